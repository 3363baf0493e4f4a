//! The tasks that take several looks.

use super::solver::{Solver, Step};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl Solver<'_> {
    /// Opens parts one after the other until the link that the task quotes is there.
    pub(super) async fn search_parts(&mut self, part: &str) -> Step {
        let link = format!("clickable \"{}\"", self.quoted(0));
        for nth in 0..self.all(part).len() {
            if !self.all(&link).is_empty() {
                break;
            }
            self.click_nth(part, nth).await?;
        }
        self.click(&link).await
    }

    /// Opens menus until the quoted item is there.
    pub(super) async fn open_menus(&mut self) -> Step {
        let wanted = format!("menuitem \"{}\"", self.quoted(1));
        for nth in 0..self.all("has-menu").len() {
            if !self.all(&wanted).is_empty() {
                break;
            }
            let item = self.reference("has-menu", nth)?;
            self.run(format!(r#"{{"verb": "hover", "ref": "{item}"}}"#)).await?;
            self.look_until_changed().await;
        }
        self.click(&wanted).await
    }

    /// Looks again until a look differs, a few times at most.
    async fn look_until_changed(&mut self) {
        let before = self.all("] ");
        for _ in 0..60 {
            self.look().await;
            if self.all("] ") != before {
                return;
            }
        }
    }

    pub(super) async fn choose_date(&mut self) -> Step {
        let date = self.between("Select ", " as");
        let parts: Vec<usize> = date.split('/').map(|part| part.parse().unwrap()).collect();
        let wanted = MONTHS[parts[0] - 1];
        self.click("textbox").await?;
        for _ in 0..13 {
            let shown =
                MONTHS.iter().position(|month| self.lines.iter().any(|line| line.contains(&format!("{month} 2016"))));
            let shown = shown.ok_or_else(|| format!("no month in {}", self.lines.join("\n")))?;
            if MONTHS[shown] == wanted {
                break;
            }
            self.click(if shown + 1 > parts[0] { "Prev" } else { "Next" }).await?;
        }
        self.click(&format!("\"{}\"", parts[1])).await?;
        self.submit().await
    }

    /// The value of a table's row.
    pub(super) fn table(&self, key: &str) -> String {
        let row = self.lines.iter().find_map(|line| line.trim().strip_prefix(&format!("{key} | ")));
        row.unwrap_or_default().trim().to_owned()
    }

    pub(super) async fn complete(&mut self) -> Step {
        let (start, end) = (self.quoted(0), self.quoted(1));
        let has_end = self.task().contains("ends with");
        self.type_into("textbox", 0, &start).await?;
        for _ in 0..20 {
            let items = self.lines.iter().filter(|line| line.contains("] ")).filter_map(|line| line.split('"').nth(1));
            let item = items
                .map(str::to_owned)
                .find(|item| item.starts_with(&start) && *item != start && (!has_end || item.ends_with(&end)));
            if let Some(item) = item {
                self.click(&format!("\"{item}\"")).await?;
                break;
            }
            self.look().await;
        }
        // Late suggestions may cover the button.
        if self.submit().await.is_err() {
            self.press("textbox", "Escape").await?;
            self.submit().await?;
        }
        Ok(())
    }

    pub(super) async fn search_engine(&mut self) -> Step {
        let (text, nth) = (self.quoted(0), {
            let task = self.between("click the ", " search result");
            task.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<usize>().unwrap()
        });
        self.type_into("textbox", 0, &text).await?;
        self.click("button \"Search\"").await?;
        for _ in 1..nth.div_ceil(3) {
            self.click("\">\"").await?;
        }
        let is_page = |line: &&String| {
            line.contains("\">\"")
                || line.contains("\"<\"")
                || line.split('"').nth(1).is_some_and(|name| name.parse::<usize>().is_ok())
        };
        let results: Vec<String> =
            self.lines.iter().filter(|line| line.contains("link \"")).filter(|line| !is_page(line)).cloned().collect();
        let result = results.get((nth - 1) % 3).ok_or_else(|| format!("no result in {}", self.lines.join("\n")))?;
        let reference = result.trim_start().trim_start_matches('[').split_once(']').unwrap().0.to_owned();
        self.click_reference(&reference).await
    }

    pub(super) async fn answer_posts(&mut self, name: &str) -> Step {
        let task = self.task();
        let user = format!("@{}", task.split_once('@').ok_or("no user")?.1.split([' ', ',']).next().unwrap());
        let button = self.quoted(0).to_lowercase();
        let most = if name == "social-media" {
            1
        } else if name.ends_with("all") {
            usize::MAX
        } else {
            self.between("button on ", " post").parse().unwrap()
        };
        let mut wanted = Vec::new();
        let mut is_of_user = false;
        for line in self.lines.iter().skip(1) {
            if line.contains(" @") {
                is_of_user = line.trim().ends_with(&user);
            }
            let line = line.trim_start();
            if is_of_user && line.starts_with('[') && line.contains(&format!("({button}")) {
                wanted.push(line.trim_start_matches('[').split_once(']').unwrap().0.to_owned());
            }
        }
        if wanted.is_empty() {
            return Err(format!("{user} {button} in {}", self.lines.join("\n")));
        }
        for reference in wanted.into_iter().take(most) {
            self.click_reference(&reference).await?;
        }
        if name == "social-media" { Ok(()) } else { self.submit().await }
    }

    pub(super) async fn buy_ticket(&mut self) -> Step {
        let task = self.task();
        let is_by_cost = task.contains("cost");
        let is_least = task.contains("cheapest") || task.contains("shortest");
        let mut tickets = Vec::new();
        let mut minutes = 0_i64;
        for line in &self.lines {
            let digits =
                |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<i64>().unwrap_or(0);
            if let Some((hours, rest)) = line.trim().split_once("h ").filter(|(_, rest)| rest.ends_with('m')) {
                minutes = digits(hours) * 60 + digits(rest);
            }
            if let Some((_, cost)) = line.split_once("Book for $") {
                tickets.push((
                    if is_by_cost { digits(cost) } else { minutes },
                    line.split('"').nth(1).unwrap().to_owned(),
                ));
            }
        }
        tickets.sort();
        let ticket = if is_least { tickets.first() } else { tickets.last() };
        self.click(&format!("\"{}\"", ticket.ok_or("no ticket")?.1)).await
    }

    pub(super) async fn search_movie(&mut self) -> Step {
        let task = self.task();
        let genre = self.between("Search for ", " movies");
        let director = self.between("directed by ", " from");
        let year = task.split_once("year ").map_or("", |(_, rest)| rest).split([' ', '.']).next().unwrap().to_owned();
        let fields: Vec<usize> =
            self.lines.iter().enumerate().filter(|(_, line)| line.contains("textbox")).map(|(at, _)| at).collect();
        for (nth, at) in fields.into_iter().enumerate() {
            let own = self.lines[at].to_lowercase();
            let label = if own.contains('"') { own } else { self.lines[at - 1].to_lowercase() };
            let text = if label.contains("genre") {
                &genre
            } else if label.contains("director") {
                &director
            } else {
                &year
            };
            self.type_into("textbox", nth, &text.clone()).await?;
        }
        self.submit().await
    }

    pub(super) async fn navigate_tree(&mut self) -> Step {
        let wanted = self.quoted(0);
        for _ in 0..20 {
            let line =
                self.lines.iter().skip(1).find(|line| line.contains(&format!("\"{wanted}\"")) && line.contains("] "));
            if let Some(line) = line {
                let reference = line.trim_start().trim_start_matches('[').split_once(']').unwrap().0.to_owned();
                return self.click_reference(&reference).await;
            }
            self.click("(hitarea expandable-hitarea").await?;
        }
        Err("not found".to_owned())
    }

    pub(super) async fn phone_book(&mut self) -> Step {
        let name = self.between("Find ", " in the contact");
        let what = self.between("click on their ", ".").to_lowercase();
        let label = if what.contains("phone") {
            "Phone:"
        } else if what.contains("mail") {
            "Email:"
        } else {
            "Address:"
        };
        for _ in 0..10 {
            if self.lines.iter().any(|line| line.trim() == format!("## {name}")) {
                let line = self.after(label);
                let reference = line.trim_start_matches('[').split_once(']').ok_or("no link")?.0.to_owned();
                return self.click_reference(&reference).await;
            }
            self.click("link \">\"").await?;
        }
        Err(format!("{name} isn't there"))
    }

    pub(super) async fn odd_or_even(&mut self) -> Step {
        let lines = self.lines.clone();
        for (at, line) in lines.iter().enumerate().skip(1).filter(|(at, _)| lines[at - 1].contains("\"Odd\"")) {
            let number: i64 = line.trim().parse().map_err(|_| format!("{line} isn't a number"))?;
            let button = if number % 2 == 0 { &lines[at + 1] } else { &lines[at - 1] };
            let reference = button.trim_start().trim_start_matches('[').split_once(']').unwrap().0.to_owned();
            self.click_reference(&reference).await?;
        }
        self.submit().await
    }

    pub(super) async fn generate_number(&mut self) -> Step {
        let task = self.task();
        let digits = |word: &str| word.trim_matches(|c: char| !c.is_ascii_digit() && c != '-').parse::<i64>().ok();
        let bound = task.split_whitespace().find_map(digits);
        for _ in 0..80 {
            self.click("Generate").await?;
            let number = self.lines.iter().skip(1).find_map(|line| line.trim().parse::<i64>().ok());
            let Some(number) = number else { continue };
            let is_right = match bound {
                Some(bound) if task.contains("less") => number < bound,
                Some(bound) if task.contains("greater") => number > bound,
                Some(bound) => number == bound,
                None if task.contains("odd") => number % 2 != 0,
                None => number % 2 == 0,
            };
            if is_right {
                return self.submit().await;
            }
        }
        Err("never generated".to_owned())
    }

    pub(super) async fn guess_number(&mut self) -> Step {
        let (mut low, mut high) = (0, 9);
        while low <= high {
            let guess = (low + high) / 2;
            self.type_into("spinbutton", 0, &guess.to_string()).await?;
            self.submit().await?;
            let said = self.lines.join(" ");
            if said.contains("lower than") {
                high = guess - 1;
            } else if said.contains("higher than") {
                low = guess + 1;
            } else {
                return Ok(());
            }
        }
        Ok(())
    }

    pub(super) async fn order_food(&mut self) -> Step {
        let task = self.task();
        let items = task.split_once("item: ").ok_or_else(|| task.clone())?.1.split(" ## ").next().unwrap().to_owned();
        for item in items.split(", ") {
            let at = self
                .lines
                .iter()
                .skip(1)
                .position(|line| line.trim() == item)
                .ok_or_else(|| format!("{item} isn't there"))?
                + 1;
            let plus = self.lines.iter().skip(at).find(|line| line.contains("\"+\"")).ok_or("no plus")?;
            let reference = plus.trim_start().trim_start_matches('[').split_once(']').unwrap().0.to_owned();
            self.click_reference(&reference).await?;
        }
        self.click("\"Order!\"").await
    }

    async fn drag(&mut self, from: &str, to: &str) -> Step {
        let (from, to) = (self.reference(from, 0)?, self.reference(to, 0)?);
        self.run(format!(r#"{{"verb": "drag", "from": {{"ref": "{from}"}}, "to": {{"ref": "{to}"}}}}"#)).await
    }

    fn names(&self) -> Vec<String> {
        let lines = self.lines.iter().filter(|line| line.contains("clickable \""));
        lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
    }

    pub(super) async fn drag_item(&mut self) -> Step {
        let (item, to) = (self.between("Drag ", " to the"), self.number() - 1);
        let names = self.names();
        self.drag(&format!("\"{item}\""), &format!("\"{}\"", names[to])).await
    }

    pub(super) async fn sort_numbers(&mut self) -> Step {
        for _ in 0..20 {
            let numbers: Vec<i64> = self.names().iter().filter_map(|name| name.parse().ok()).collect();
            let wrong = numbers.windows(2).position(|pair| pair[0] > pair[1]);
            let Some(at) = wrong else { return self.submit().await };
            let (from, to) = (self.reference("clickable \"", at)?, self.reference("clickable \"", at + 1)?);
            self.run(format!(r#"{{"verb": "drag", "from": {{"ref": "{from}"}}, "to": {{"ref": "{to}"}}}}"#)).await?;
        }
        Err(format!("never sorted: {}", self.lines.join("\n")))
    }

    pub(super) async fn handle_email(&mut self) -> Step {
        let task = self.task();
        let sender = self.between("email by ", " and ");
        let at =
            self.lines.iter().position(|line| line.trim() == sender).ok_or_else(|| format!("{sender} isn't there"))?;
        let rest: Vec<String> = self.lines.iter().skip(at).cloned().collect();
        let below = |text: &str| {
            let line =
                rest.iter().find(|line| line.contains(text)).map(|line| line.trim_start().trim_start_matches('['));
            line.and_then(|line| line.split_once(']')).map(|(reference, _)| reference.to_owned())
        };
        if task.contains("trash") {
            return self.click_reference(&below("(trash").ok_or("no trash")?).await;
        }
        if task.contains("star icon") {
            return self.click_reference(&below("(star").ok_or("no star")?).await;
        }
        let row = self.lines.get(at - 1).cloned().unwrap_or_default();
        let row = row.trim_start().trim_start_matches('[').split_once(']').ok_or("no row")?.0.to_owned();
        let (text, to) = (self.quoted(0), self.between("that email to ", "."));
        self.click_reference(&row).await?;
        if task.contains("reply") {
            self.click("eply").await?;
            self.type_into("textbox", 0, &text).await?;
        } else {
            self.click("orward").await?;
            self.type_into("textbox", 0, &to).await?;
        }
        self.click("send").await
    }
}
