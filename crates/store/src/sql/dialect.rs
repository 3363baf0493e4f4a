//! SQLite's words for what PostgreSQL says otherwise. The verbs keep to what both read; the rest is a short list of rules, applied to
//! the words of a statement, each where it stands.
//!
//! What has no counterpart among PostgreSQL's functions is made there once, with the tables ([`FUNCTIONS`]).

use std::fmt::Write as _;

/// Tables that are looked at in the order in which their rows were written.
const WITH_ROWID: [&str; 2] = ["cycles", "outgoing_parts"];

/// SQLite's functions that PostgreSQL lacks. What can't be read as JSON or as a time is NULL there, too.
pub(super) const FUNCTIONS: &str = r#"
CREATE FUNCTION json_extract(body TEXT, path TEXT) RETURNS TEXT IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN jsonb_path_query_first(body::jsonb, path::jsonpath) #>> '{}';
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
CREATE FUNCTION json_valid(body TEXT) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM body::json;
    RETURN body IS NOT NULL;
EXCEPTION WHEN data_exception THEN
    RETURN FALSE;
END $$;
CREATE FUNCTION each_of(list TEXT) RETURNS TABLE (key BIGINT, value TEXT) IMMUTABLE ROWS 20 LANGUAGE sql AS $$
    SELECT ordinality - 1, element FROM jsonb_array_elements_text(list::jsonb) WITH ORDINALITY AS e (element, ordinality)
$$;
CREATE FUNCTION julianday(moment TEXT) RETURNS DOUBLE PRECISION STABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN extract(epoch FROM moment::timestamptz)::double precision / 86400 + 2440587.5;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
CREATE FUNCTION strftime(format TEXT, moment TEXT, step TEXT DEFAULT '0 seconds') RETURNS TEXT STABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN to_char((moment::timestamptz + step::interval) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
"#;

/// A statement of a verb.
pub(super) fn statement(sql: &str) -> String {
    Rewriter { tokens: &tokens(sql), subqueries: 0, is_schema: false }.all()
}

/// Statements that make or change tables.
pub(super) fn schema(sql: &str) -> String {
    Rewriter { tokens: &tokens(sql), subqueries: 0, is_schema: true }.all()
}

/// A word, a literal, a parameter, a mark; white space and comments go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token<'a> {
    text: &'a str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Literal,
    Parameter,
    Mark,
}

fn tokens(sql: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let (kind, length) = match first {
            _ if first.is_whitespace() => (None, first.len_utf8()),
            '-' if rest.starts_with("--") => (None, rest.find('\n').unwrap_or(rest.len())),
            '\'' | '"' => (Some(Kind::Literal), quoted(rest, first)),
            '?' => {
                let digits = rest.chars().skip(1).take_while(char::is_ascii_digit).count();
                (Some(Kind::Parameter), 1 + digits)
            }
            _ if is_word(first) => (Some(Kind::Word), rest.find(|c| !is_word(c)).unwrap_or(rest.len())),
            _ => {
                let marks = ["->>", "||", "!=", "<>", "<=", ">=", "::"];
                let mark = marks.into_iter().find(|mark| rest.starts_with(mark));
                (Some(Kind::Mark), mark.map_or(first.len_utf8(), str::len))
            }
        };
        let (text, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        tokens.extend(kind.map(|kind| Token { text, kind }));
        rest = after;
    }
    tokens
}

/// How long a quoted text is, its quotes included: a doubled quote is one within.
fn quoted(text: &str, quote: char) -> usize {
    let mut inner = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = inner.next() {
        if c == quote && inner.next_if(|(_, next)| *next == quote).is_none() {
            return at + quote.len_utf8();
        }
    }
    text.len()
}

struct Rewriter<'t> {
    tokens: &'t [Token<'t>],
    subqueries: usize,
    is_schema: bool,
}

impl<'t> Rewriter<'t> {
    fn all(mut self) -> String {
        self.range(0, self.tokens.len())
    }

    fn text(&self, at: usize) -> &'t str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    fn is(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(ahead, word)| self.text(at + ahead) == *word)
    }

    /// The place of the parenthesis that closes the one at `at`.
    fn closing(&self, at: usize) -> usize {
        let mut depth = 0_usize;
        for (place, token) in self.tokens.iter().enumerate().skip(at) {
            match token.text {
                "(" => depth += 1,
                ")" if depth <= 1 => return place,
                ")" => depth -= 1,
                _ => {}
            }
        }
        self.tokens.len()
    }

    /// The arguments between the parentheses at `open` and `close`, rewritten.
    fn arguments(&mut self, open: usize, close: usize) -> Vec<String> {
        let (mut arguments, mut begin, mut depth) = (Vec::new(), open + 1, 0_usize);
        for at in open + 1..close {
            match self.text(at) {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                "," if depth == 0 => {
                    arguments.push(self.range(begin, at));
                    begin = at + 1;
                }
                _ => {}
            }
        }
        arguments.push(self.range(begin, close));
        arguments
    }

    fn range(&mut self, from: usize, to: usize) -> String {
        let mut out = String::new();
        let mut at = from;
        while at < to {
            let (text, next) = self.one(at);
            // No space where a name and its parenthesis or dot belong together.
            let is_tight = out.ends_with(['.', '(', ':']) || [".", ")", ",", "(", "::"].contains(&text.as_str());
            let is_call = text == "(" && at > 0 && is_keyword(self.text(at - 1)) && self.text(at - 1) != "CAST";
            if !out.is_empty() && (!is_tight || is_call) {
                out.push(' ');
            }
            out.push_str(&text);
            at = next.max(at + 1);
        }
        out
    }

    /// What stands for the token at `at`, and where it goes on.
    fn one(&mut self, at: usize) -> (String, usize) {
        let Some(token) = self.tokens.get(at).copied() else { return (String::new(), at + 1) };
        let is_call = self.text(at + 1) == "(";
        match (token.kind, token.text) {
            (Kind::Parameter, text) => (text.replacen('?', "$", 1), at + 1),
            (Kind::Literal | Kind::Mark, text) => (text.to_owned(), at + 1),
            (Kind::Word, "INDEXED") if self.is(at + 1, &["BY"]) => (String::new(), at + 3),
            (Kind::Word, "CROSS") if self.is(at + 1, &["JOIN"]) => ("JOIN".to_owned(), at + 2),
            (Kind::Word, "IS") => self.comparison(at),
            (Kind::Word, "SELECT") if self.is(at + 1, &["value", "FROM", "json_each"]) => {
                ("SELECT value::bigint FROM each_of".to_owned(), at + 4)
            }
            (Kind::Word, "value") if self.text(at + 1) == "->>" => ("value::jsonb".to_owned(), at + 1),
            (Kind::Word, "FROM" | "JOIN") if is_call => self.subquery(at),
            (Kind::Word, "AS") if self.is(at + 1, &["INTEGER", ")"]) => ("AS BIGINT".to_owned(), at + 2),
            (Kind::Word, "AS") if self.is(at + 1, &["TEXT", ")"]) => ("AS TEXT".to_owned(), at + 2),
            (Kind::Word, name) if is_call => self.call(name, at),
            (Kind::Word, name) if self.is_schema => self.of_table(name, at),
            (Kind::Word, name) => (name.to_owned(), at + 1),
        }
    }

    /// SQLite compares by `IS` whatever stands there.
    fn comparison(&self, at: usize) -> (String, usize) {
        let known = ["NULL", "TRUE", "FALSE", "DISTINCT"];
        match (self.text(at + 1), self.text(at + 2)) {
            ("NOT", after) if known.contains(&after) => ("IS NOT".to_owned(), at + 2),
            ("NOT", _) => ("IS DISTINCT FROM".to_owned(), at + 2),
            (after, _) if known.contains(&after) => ("IS".to_owned(), at + 1),
            _ => ("IS NOT DISTINCT FROM".to_owned(), at + 1),
        }
    }

    /// A subquery among the tables has to have a name.
    fn subquery(&mut self, at: usize) -> (String, usize) {
        let close = self.closing(at + 1);
        let inner = self.range(at + 2, close);
        let mut out = format!("{} ({inner})", self.text(at));
        let after = self.tokens.get(close + 1);
        if !after.is_some_and(|token| token.kind == Kind::Word && (token.text == "AS" || !is_keyword(token.text))) {
            self.subqueries += 1;
            write!(out, " AS sub{}", self.subqueries).ok();
        }
        (out, close + 1)
    }

    fn call(&mut self, name: &str, at: usize) -> (String, usize) {
        let open = at + 1;
        let close = self.closing(open);
        let renamed = match name {
            "json_each" => "each_of",
            "char" => "chr",
            "instr" => "strpos",
            _ => name,
        };
        match name {
            // Columns have their types here: nothing else can stand in them.
            "typeof" if self.text(close + 1) == "=" => ("TRUE".to_owned(), close + 3),
            "typeof" if self.is(close + 1, &["IN", "("]) => ("TRUE".to_owned(), self.closing(close + 2) + 1),
            "iif" | "max" | "min" => {
                let arguments = self.arguments(open, close);
                let text = match (name, arguments.as_slice()) {
                    ("iif", [condition, yes, no]) => format!("CASE WHEN {condition} THEN {yes} ELSE {no} END"),
                    ("max", [_, _, ..]) => format!("greatest({})", arguments.join(", ")),
                    ("min", [_, _, ..]) => format!("least({})", arguments.join(", ")),
                    _ => format!("{name}({})", arguments.join(", ")),
                };
                (text, close + 1)
            }
            "group_concat" => {
                let arguments = self.arguments(open, close);
                let (value, between) = match arguments.as_slice() {
                    [value, between, ..] => (value.as_str(), between.as_str()),
                    [value] => (value.as_str(), "','"),
                    [] => ("", ""),
                };
                (format!("string_agg(CAST({value} AS TEXT), {between})"), close + 1)
            }
            "json_group_array" => {
                let inner = self.range(open + 1, close);
                (format!("CAST(json_agg({inner}) AS TEXT)"), close + 1)
            }
            _ if self.is_schema && self.is(at.wrapping_sub(2), &["CREATE", "TABLE"]) && WITH_ROWID.contains(&name) => {
                (format!("{name} (rowid BIGINT GENERATED ALWAYS AS IDENTITY,"), open + 1)
            }
            _ if self.is_schema => self.of_table(renamed, at),
            _ => (renamed.to_owned(), at + 1),
        }
    }

    /// What tables are made of.
    fn of_table(&self, name: &str, at: usize) -> (String, usize) {
        const IDENTITY: &str = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY";
        match name {
            "INTEGER" if self.is(at + 1, &["PRIMARY", "KEY", "AUTOINCREMENT"]) => (IDENTITY.to_owned(), at + 4),
            "INTEGER" if self.text(at.wrapping_sub(1)) == "id" && self.is(at + 1, &["PRIMARY", "KEY", ","]) => {
                (IDENTITY.to_owned(), at + 3)
            }
            "INTEGER" => ("BIGINT".to_owned(), at + 1),
            // Compared byte by byte, as SQLite does: times, ids and keys are looked up by where they lie.
            "TEXT" => ("TEXT COLLATE \"C\"".to_owned(), at + 1),
            "REAL" => ("DOUBLE PRECISION".to_owned(), at + 1),
            "BLOB" => ("BYTEA".to_owned(), at + 1),
            "WITHOUT" if self.is(at + 1, &["ROWID"]) => (String::new(), at + 2),
            _ => (name.to_owned(), at + 1),
        }
    }
}

/// Words in capitals are the language's own; so are these that the verbs write.
fn is_keyword(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase()) && !word.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_read_stays_but_for_its_parameters() {
        assert_eq!(
            statement("SELECT id FROM t WHERE a = ?1 AND b IN (?2, '?3 it''s')"),
            "SELECT id FROM t WHERE a = $1 AND b IN ($2, '?3 it''s')"
        );
        assert_eq!(
            statement("SELECT count(*), max(id) FROM t -- all\n GROUP BY x"),
            "SELECT count(*), max(id) FROM t GROUP BY x"
        );
        assert_eq!(
            statement("SELECT a.b FROM x AS a JOIN y ON y.c = a.c"),
            "SELECT a.b FROM x AS a JOIN y ON y.c = a.c"
        );
    }

    #[test]
    fn comparisons_that_know_null_are_told_from_tests_for_it() {
        assert_eq!(
            statement("a IS ?1 AND b IS NOT c AND d IS NULL AND e IS NOT NULL AND f IS NOT 0"),
            "a IS NOT DISTINCT FROM $1 AND b IS DISTINCT FROM c AND d IS NULL AND e IS NOT NULL AND f IS DISTINCT FROM 0"
        );
        assert_eq!(statement("a IS NOT DISTINCT FROM b"), "a IS NOT DISTINCT FROM b");
    }

    #[test]
    fn functions_have_their_other_names() {
        assert_eq!(
            statement("SET a = max(coalesce(a, 1), ?2), b = min(x)"),
            "SET a = greatest(coalesce(a, 1), $2), b = min(x)"
        );
        assert_eq!(statement("iif(a = ?1, max(b, c), NULL)"), "CASE WHEN a = $1 THEN greatest(b, c) ELSE NULL END");
        assert_eq!(statement("raw || char(10) || instr(a, b)"), "raw || chr(10) || strpos(a, b)");
        assert_eq!(statement("CAST(chat_id AS INTEGER)"), "CAST(chat_id AS BIGINT)");
    }

    #[test]
    fn lists_are_read_from_json() {
        assert_eq!(
            statement("id IN (SELECT value FROM json_each(?1))"),
            "id IN (SELECT value::bigint FROM each_of($1))"
        );
        assert_eq!(
            statement("id IN (SELECT CAST(value AS TEXT) FROM json_each(?1))"),
            "id IN (SELECT CAST(value AS TEXT) FROM each_of($1))"
        );
    }

    #[test]
    fn what_columns_hold_is_known_and_indices_arent_chosen() {
        assert_eq!(
            statement("(typeof(o.chat_id) = 'integer' AND typeof(o.t) IN ('integer', 'null')) AND x = 1"),
            "(TRUE AND TRUE) AND x = 1"
        );
        assert_eq!(statement("FROM t INDEXED BY t_by_x WHERE x CROSS JOIN y ON z"), "FROM t  WHERE x JOIN y ON z");
    }

    #[test]
    fn subqueries_among_tables_are_named() {
        assert_eq!(
            statement("SELECT a FROM (SELECT b FROM (SELECT c FROM d) WHERE e) ORDER BY a"),
            "SELECT a FROM (SELECT b FROM (SELECT c FROM d) AS sub1 WHERE e) AS sub2 ORDER BY a"
        );
        assert_eq!(
            statement("SELECT f.a FROM (SELECT b) f JOIN (SELECT c) AS g ON x"),
            "SELECT f.a FROM (SELECT b) f JOIN (SELECT c) AS g ON x"
        );
    }

    #[test]
    fn tables_are_made_of_other_types() {
        let made = schema(
            "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT NOT NULL, b REAL, c BLOB) WITHOUT ROWID;",
        );
        assert_eq!(
            made,
            "CREATE TABLE t(id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, a TEXT COLLATE \"C\" NOT NULL, b DOUBLE PRECISION, c BYTEA)  ;"
        );
        assert_eq!(
            schema("CREATE TABLE s (id INTEGER PRIMARY KEY CHECK (id = 1), user_id INTEGER PRIMARY KEY)"),
            "CREATE TABLE s(id BIGINT PRIMARY KEY CHECK (id = 1), user_id BIGINT PRIMARY KEY)"
        );
        assert!(schema("CREATE TABLE cycles ( id TEXT PRIMARY KEY )").starts_with("CREATE TABLE cycles (rowid BIGINT"));
    }
}
