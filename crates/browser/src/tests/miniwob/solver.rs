//! Reading looks and acting on them, and the short tasks.

use super::World;

/// A script that solves one task, and sees only looks.
pub(super) struct Solver<'a> {
    pub(super) world: &'a mut World,
    /// The last look, without its head.
    pub(super) lines: Vec<String>,
    pub(super) look_bytes: Vec<usize>,
}

pub(super) type Step = Result<(), String>;

impl<'a> Solver<'a> {
    pub(super) fn new(world: &'a mut World) -> Self {
        Self { world, lines: Vec::new(), look_bytes: Vec::new() }
    }

    pub(super) async fn look(&mut self) {
        let look = self.world.done(r#"{"verb": "look", "whole": true}"#).await;
        self.look_bytes.push(look.len());
        self.lines = look.lines().skip(1).map(str::to_owned).collect();
    }

    pub(super) async fn run(&mut self, verb: String) -> Step {
        self.world
            .run(&verb)
            .await
            .map_err(|error| format!("{verb}: {}", error.to_string().chars().take(300).collect::<String>()))?;
        self.look().await;
        Ok(())
    }

    /// The references of the lines that contain a text.
    pub(super) fn all(&self, text: &str) -> Vec<String> {
        let lines =
            self.lines.iter().map(|line| line.trim_start()).filter(|line| line.starts_with('[') && line.contains(text));
        lines.map(|line| line.trim_start_matches('[').split_once(']').unwrap().0.to_owned()).collect()
    }

    pub(super) fn reference(&self, text: &str, nth: usize) -> Result<String, String> {
        self.all(text).get(nth).cloned().ok_or_else(|| format!("{text} ({nth}) isn't in\n{}", self.lines.join("\n")))
    }

    pub(super) async fn click(&mut self, text: &str) -> Step {
        self.click_nth(text, 0).await
    }

    pub(super) async fn click_nth(&mut self, text: &str, nth: usize) -> Step {
        let reference = self.reference(text, nth)?;
        self.click_reference(&reference).await
    }

    pub(super) async fn click_reference(&mut self, reference: &str) -> Step {
        self.run(format!(r#"{{"verb": "click", "ref": "{reference}"}}"#)).await
    }

    pub(super) async fn type_into(&mut self, field: &str, nth: usize, text: &str) -> Step {
        let reference = self.reference(field, nth)?;
        let text = serde_json::to_string(text).unwrap();
        self.run(format!(r#"{{"verb": "type", "ref": "{reference}", "text": {text}}}"#)).await
    }

    pub(super) async fn press(&mut self, element: &str, key: &str) -> Step {
        let reference = self.reference(element, 0)?;
        self.run(format!(r#"{{"verb": "press", "ref": "{reference}", "key": "{key}"}}"#)).await
    }

    pub(super) async fn submit(&mut self) -> Step {
        self.click("Submit").await
    }

    /// The task in words: the text before the first control.
    pub(super) fn task(&self) -> String {
        let is_text = |line: &&String| !line.trim_start().starts_with('[') && !line.starts_with("navigation");
        self.lines.iter().take_while(is_text).cloned().collect::<Vec<_>>().join(" ")
    }

    pub(super) fn quoted(&self, nth: usize) -> String {
        self.task().split('"').nth(nth * 2 + 1).unwrap_or_default().trim().to_owned()
    }

    /// The words of the task between two others.
    pub(super) fn between(&self, start: &str, end: &str) -> String {
        let task = self.task();
        let rest = task.split_once(start).map_or("", |(_, rest)| rest);
        rest.split_once(end).map_or(rest, |(found, _)| found).trim().to_owned()
    }

    /// The line after the one with a text.
    pub(super) fn after(&self, text: &str) -> String {
        let at = self.lines.iter().position(|line| line.contains(text));
        at.and_then(|at| self.lines.get(at + 1)).map(|line| line.trim().to_owned()).unwrap_or_default()
    }

    pub(super) fn reward(&self) -> f64 {
        self.after("Last reward:").parse().unwrap_or(-9.0)
    }

    /// The number in the task's words, such as 2 in "2nd".
    pub(super) fn number(&self) -> usize {
        let digits = self
            .task()
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect::<String>();
        digits.parse().unwrap_or(1)
    }

    pub(super) async fn solve(&mut self, name: &str) -> Step {
        match name {
            "click-test" => self.click("Click Me!").await,
            "click-test-2" | "click-test-transfer" => self.click("\"ONE\"").await,
            "click-button" | "unicode-test" => self.click(&format!("button \"{}\"", self.quoted(0))).await,
            "click-button-sequence" => {
                self.click("\"ONE\"").await?;
                self.click("\"TWO\"").await
            }
            "click-link" => self.click(&format!("\"{}\"", self.quoted(0))).await,
            "click-dialog" => self.click("\"Close\"").await,
            "click-dialog-2" => {
                let label = self.quoted(0);
                self.click(&format!("\"{}\"", if label == "x" { "Close" } else { &label })).await
            }
            "click-option" => {
                self.click(&format!("radio \"{}\"", self.between("Select ", " and click"))).await?;
                self.submit().await
            }
            "click-checkboxes" | "click-checkboxes-large" | "click-checkboxes-transfer" => {
                for label in self.between("Select ", " and click").split(", ").filter(|label| *label != "nothing") {
                    self.click(&format!("checkbox \"{label}\"")).await?;
                }
                self.submit().await
            }
            "click-widget" => {
                let widget = self.quoted(0);
                self.click(match widget.as_str() {
                    "text" => "textbox",
                    "textarea" => "textbox (ta",
                    other => other,
                })
                .await
            }
            "click-color" => {
                let colour = self.between("Click on the ", " colored");
                let hex = [
                    "black #000000",
                    "red #ff0000",
                    "lime #00ff00",
                    "blue #0000ff",
                    "yellow #ffff00",
                    "cyan #00ffff",
                    "magenta #ff00ff",
                    "white #ffffff",
                    "grey #808080",
                    "olive #808000",
                    "purple #800080",
                    "orange #ffa500",
                    "pink #ffc0cb",
                    "green #008000",
                ]
                .iter()
                .find_map(|pair| pair.strip_prefix(&format!("{colour} ")));
                self.click(hex.ok_or_else(|| format!("{colour} has no figures"))?).await
            }
            "click-tab" => self.click(&format!("tab \"{}\"", self.between("Click on ", "."))).await,
            "click-tab-2" | "click-tab-2-easy" | "click-tab-2-medium" | "click-tab-2-hard" => {
                self.search_parts("] tab \"").await
            }
            "click-collapsible-2" | "click-collapsible-2-nodelay" => self.search_parts("] tab \"Section").await,
            "click-collapsible" | "click-collapsible-nodelay" => {
                self.click("tab \"Section").await?;
                self.click("button \"Submit\"").await
            }
            "click-menu-2" => {
                self.click("\"Menu\"").await?;
                self.open_menus().await
            }
            "click-scroll-list" | "choose-list" => {
                let wanted = self.between("Select ", " from the").replace(" and ", ", ");
                let wanted: Vec<&str> = wanted.split(", ").collect();
                let list = self.reference("box", 0)?;
                let options = serde_json::to_string(&wanted).unwrap();
                self.run(format!(r#"{{"verb": "select", "ref": "{list}", "options": {options}}}"#)).await?;
                self.submit().await
            }
            "choose-date" | "choose-date-easy" | "choose-date-medium" | "choose-date-nodelay" => {
                self.choose_date().await
            }
            "enter-date" => {
                let date = self.between("Enter ", " as");
                let parts: Vec<&str> = date.split('/').collect();
                let value = format!("{}-{}-{}", parts[2], parts[0], parts[1]);
                self.type_into("date field", 0, &value).await?;
                self.submit().await
            }
            "enter-time" => {
                let time = self.between("Enter ", " as");
                let (clock, half) = time.split_once(' ').ok_or("no half")?;
                let (hour, minute) = clock.split_once(':').ok_or("no minute")?;
                let hour = hour.parse::<u32>().unwrap() % 12 + if half == "PM" { 12 } else { 0 };
                self.type_into("date field", 0, &format!("{hour:02}:{minute}")).await?;
                self.submit().await
            }
            "enter-text" | "enter-text-dynamic" => {
                self.type_into("textbox", 0, &self.quoted(0)).await?;
                self.submit().await
            }
            "enter-text-2" => {
                let text = self.quoted(0);
                let text = if self.task().contains("upper") { text.to_uppercase() } else { text.to_lowercase() };
                self.type_into("textbox", 0, &text).await?;
                self.submit().await
            }
            "enter-password" => {
                let text = self.quoted(0);
                self.type_into("textbox", 0, &text).await?;
                self.type_into("textbox", 1, &text).await?;
                self.submit().await
            }
            "login-user" | "login-user-popup" => {
                let (user, word) = (self.quoted(0), self.quoted(1));
                for (nth, text) in [&user, &word].into_iter().enumerate() {
                    // A banner may cover the form.
                    if self.type_into("textbox", nth, text).await.is_err() {
                        self.look().await;
                        self.click("Cancel").await?;
                        self.type_into("textbox", nth, text).await?;
                    }
                }
                match self.click("\"Login\"").await {
                    Err(_) => self.click("\"OK\"").await,
                    done => done,
                }
            }
            "focus-text" => self.click("textbox").await,
            "focus-text-2" => self.click_nth("textbox", self.number() - 1).await,
            "find-word" => {
                let task = self.lines.get(1).cloned().unwrap_or_default();
                let word = task.split_whitespace().nth(self.number() - 1).unwrap_or_default();
                let word = word.trim_end_matches([',', '.']).to_owned();
                self.type_into("textbox", 0, &word).await?;
                self.submit().await
            }
            "copy-paste" | "copy-paste-2" => {
                let source =
                    if name == "copy-paste" { "to-copy".to_owned() } else { format!("text-{}", self.number()) };
                self.press(&source, "Control+A").await?;
                self.press(&source, "Control+C").await?;
                self.press("answer-input", "Control+V").await?;
                self.submit().await
            }
            "read-table" => {
                let key = self.between("value of ", " into");
                let value = self.table(&key);
                self.type_into("textbox", 0, &value).await?;
                self.submit().await
            }
            "read-table-2" => {
                for nth in 0..2 {
                    let labels: Vec<String> = self
                        .lines
                        .iter()
                        .filter(|line| line.ends_with(':') && !line.contains("Last r") && !line.contains("Time left"))
                        .cloned()
                        .collect();
                    let value = self.table(labels[nth].trim_end_matches(':'));
                    self.type_into("textbox", nth, &value).await?;
                }
                self.submit().await
            }
            "text-transform" => {
                let text = self.lines.get(1).cloned().unwrap_or_default().replace(' ', "");
                self.type_into("textbox", 0, &text).await?;
                self.submit().await
            }
            "simple-arithmetic" => {
                let sum = self.lines.get(1).cloned().unwrap_or_default();
                let parts: Vec<&str> = sum.split_whitespace().collect();
                let (a, b): (i64, i64) = (parts[0].parse().unwrap(), parts[2].parse().unwrap());
                let result = match parts[1] {
                    "+" => a + b,
                    "-" => a - b,
                    "x" | "*" => a * b,
                    _ => a / b,
                };
                self.type_into("textbox", 0, &result.to_string()).await?;
                self.submit().await
            }
            "simple-algebra" => {
                let sum = self.lines.get(1).cloned().unwrap_or_default();
                let parts: Vec<&str> = sum.split_whitespace().collect();
                let number = |at: usize| parts[at].parse::<i64>().unwrap();
                let x = match (parts[0], parts[1]) {
                    ("x", "+") => number(4) - number(2),
                    ("x", "-") => number(4) + number(2),
                    (_, "+") => number(4) - number(0),
                    _ => number(0) - number(4),
                };
                self.type_into("textbox", 0, &x.to_string()).await?;
                self.submit().await
            }
            "use-spinner" => {
                // The field takes no text, but arrows.
                let number: i64 = self.between("Select ", " with").parse().map_err(|_| "no number")?;
                for _ in 0..number.abs() {
                    self.press("spinbutton", if number < 0 { "ArrowDown" } else { "ArrowUp" }).await?;
                }
                self.submit().await
            }
            "use-autocomplete" | "use-autocomplete-nodelay" => self.complete().await,
            "search-engine" => self.search_engine().await,
            "social-media" | "social-media-all" | "social-media-some" => self.answer_posts(name).await,
            "find-greatest" => {
                let cards: Vec<i64> = self
                    .lines
                    .iter()
                    .filter(|line| line.contains("clickable \""))
                    .filter_map(|line| line.split('"').nth(1)?.parse().ok())
                    .collect();
                let most = cards.iter().max().ok_or("no cards")?;
                self.click(&format!("clickable \"{most}\"")).await?;
                self.submit().await
            }
            "buy-ticket" => self.buy_ticket().await,
            "form-sequence-2" => {
                let (which, text) = (self.number(), self.quoted(0));
                let kind = if self.task().contains("radio") { "radio" } else { "checkbox" };
                self.click_nth(kind, which - 1).await?;
                let into = self.between("into the ", " textbox");
                let nth: usize = into.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
                self.type_into("textbox", nth - 1, &text).await?;
                self.submit().await
            }
            "multi-layouts" | "multi-orderings" => self.search_movie().await,
            "navigate-tree" => self.navigate_tree().await,
            "phone-book" => self.phone_book().await,
            "odd-or-even" => self.odd_or_even().await,
            "generate-number" => self.generate_number().await,
            "guess-number" => self.guess_number().await,
            "order-food" => self.order_food().await,
            "drag-items" => self.drag_item().await,
            "drag-sort-numbers" => self.sort_numbers().await,
            name if name.starts_with("email-inbox") => self.handle_email().await,
            other => Err(format!("{other} has no script")),
        }
    }
}
