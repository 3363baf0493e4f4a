//! Sentences with their expected reading, on Saturday 2026-11-21, 14:00, in Berlin.

use chrono::{NaiveDateTime, TimeZone as _};
use proptest::prelude::*;

mod paraphrases;

use super::*;

mod everyday;
mod task_line;

fn local(tz: Tz, text: &str) -> DateTime<Tz> {
    tz.from_local_datetime(&NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap()).earliest().unwrap()
}

fn saturday() -> DateTime<Tz> {
    local("Europe/Berlin".parse::<Tz>().unwrap(), "2026-11-21 14:00")
}

fn form(parsed: &ParsedMessage) -> String {
    match parsed {
        ParsedMessage::Commands(commands) => commands.iter().map(command_form).collect::<Vec<_>>().join(" + "),
        ParsedMessage::Question(_) => "question".to_owned(),
        ParsedMessage::Unclear { .. } => "unclear".to_owned(),
    }
}

fn command_form(command: &OfflineCommand) -> String {
    let which = |which: &Which| match which {
        Which::Number(number) => format!("#{number}"),
        Which::Text(text) => format!("‹{text}›"),
        Which::Title(text) => format!("the whole ‹{text}›"),
        Which::It => "it".to_owned(),
    };
    let kind_form =
        |kind: Option<ThingKind>| kind.map_or_else(|| "thing".to_owned(), |kind| format!("{kind:?}").to_lowercase());
    let moment = |moment: &Moment| match (&moment.when, moment.day) {
        (_, Some(day)) => day.format("%a %m-%d").to_string(),
        (When::At(slot), None) if moment.time.is_some() => slot.civil.format("%H:%M alone").to_string(),
        (When::At(slot), None) => slot.civil.format("%a %m-%d %H:%M").to_string(),
        (When::Every(rule), None) => rule.to_string(),
    };
    let place = |backlog: &bool| if *backlog { "backlog" } else { "active" };
    match command {
        OfflineCommand::Remember { fact, topic: None } => format!("remember ‹{fact}›"),
        OfflineCommand::Remember { fact, topic: Some(topic) } => format!("remember ‹{fact}› under ‹{topic}›"),
        OfflineCommand::Forget { query } => format!("forget ‹{query}›"),
        OfflineCommand::Stated { fact } => format!("stated ‹{fact}›"),
        OfflineCommand::Did { task, items, .. } if items.is_empty() => format!("did ‹{task}›"),
        OfflineCommand::Did { task, items, .. } => format!("did ‹{task}› or bought ‹{}›", items.join("› ‹")),
        OfflineCommand::ListAdd { list, items } => format!("{list} + ‹{}›", items.join("› ‹")),
        OfflineCommand::ListTake { list, items } => format!("{list} - ‹{}›", items.join("› ‹")),
        OfflineCommand::ListShow { list } => list.clone().unwrap_or_else(|| "that list".to_owned()),
        OfflineCommand::ListClear { list } => format!("{list} cleared"),
        OfflineCommand::Remind { what, when, missed } => {
            let when = match when {
                When::At(slot) => slot.civil.format("%a %m-%d %H:%M").to_string(),
                When::Every(rule) => rule.to_string(),
            };
            let missed = if *missed == Missed::Run { String::new() } else { format!(", {missed}") };
            format!("remind ‹{what}› {when}{missed}")
        }
        OfflineCommand::RemindNear { what, when, .. } => format!("remind ‹{what}› near ‹{when}›"),
        OfflineCommand::StopReminder => "stop the last".to_owned(),
        OfflineCommand::RemindersHere => "all reminders here".to_owned(),
        OfflineCommand::ListReminders => "list reminders".to_owned(),
        OfflineCommand::CancelReminder { which: w } => format!("cancel {}", which(w)),
        OfflineCommand::TaskAdd { title, backlog, due } => {
            let due = due.map(|due| due.format(" until %a %m-%d").to_string()).unwrap_or_default();
            format!("add ‹{title}› {}{due}", place(backlog))
        }
        OfflineCommand::TaskDone { which: w } => format!("done {}", which(w)),
        OfflineCommand::TaskDrop { which: w } => format!("drop {}", which(w)),
        OfflineCommand::TaskRename { which: w, to } => format!("rename {} to ‹{to}›", which(w)),
        OfflineCommand::TaskMove { which: w, backlog } => format!("move {} to {}", which(w), place(backlog)),
        OfflineCommand::Delete { which: w } => format!("delete {}", which(w)),
        OfflineCommand::Postpone { which: w, kind, when } => {
            format!("postpone {} {} to {}", which(w), kind_form(*kind), moment(when))
        }
        OfflineCommand::Snooze { when } => format!("snooze to {}", moment(when)),
        OfflineCommand::TaskList { backlog } => format!("list {}", place(backlog)),
        OfflineCommand::Know { topic: Some(topic) } => format!("know ‹{topic}›"),
        OfflineCommand::Know { topic: None } => "know all".to_owned(),
        OfflineCommand::Agenda { day } => format!("agenda of {day}"),
        OfflineCommand::Time => "time".to_owned(),
        OfflineCommand::Date => "date".to_owned(),
        OfflineCommand::Sum { text } => format!("sum {text}"),
        OfflineCommand::CallYourself { name } => format!("call yourself ‹{name}›"),
        OfflineCommand::Undo => "undo".to_owned(),
        OfflineCommand::Small(small) => format!("{small:?}").to_lowercase(),
        OfflineCommand::Status => "status".to_owned(),
        OfflineCommand::Help => "help".to_owned(),
        OfflineCommand::Greeting => "greeting".to_owned(),
        OfflineCommand::Thanks => "thanks".to_owned(),
        OfflineCommand::AskBack { .. } => "ask back".to_owned(),
    }
}

#[track_caller]
fn check_all(table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(text, expected)| {
            let got = form(&parse(text, saturday()));
            (got != *expected).then(|| format!("{text:?}\n    expected {expected}\n    got      {got}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

const REMINDERS: &[(&str, &str)] = &[
    ("remind me to call Anna tomorrow at 9", "remind ‹call Anna› Sun 11-22 09:00"),
    ("Remind me tomorrow at 9 to call Anna.", "remind ‹call Anna› Sun 11-22 09:00"),
    ("tomorrow at 9 remind me to call Anna", "remind ‹call Anna› Sun 11-22 09:00"),
    ("Tomorrow at 9, please remind me to call Anna", "remind ‹call Anna› Sun 11-22 09:00"),
    ("tomorrow remind me at 9 to call Anna", "remind ‹call Anna› Sun 11-22 09:00"),
    ("can you remind me in 20 minutes to turn off the oven?", "remind ‹turn off the oven› Sat 11-21 14:20"),
    ("Could you please remind me to turn off the oven in 20 minutes?", "remind ‹turn off the oven› Sat 11-21 14:20"),
    ("In 20 minutes, can you remind me to turn off the oven?", "remind ‹turn off the oven› Sat 11-21 14:20"),
    ("remind me to call Anna tomorrow?", "remind ‹call Anna› Sun 11-22 09:00"),
    ("Hey, remind me at 17:30 that the shop closes", "remind ‹the shop closes› Sat 11-21 17:30"),
    ("remind me about the dentist on Friday at 3pm", "remind ‹the dentist› Fri 11-27 15:00"),
    ("remind me of Anna's birthday on 3 May", "remind ‹Anna's birthday› Mon 05-03 09:00"),
    ("remind me on 3 May of Anna's birthday", "remind ‹Anna's birthday› Mon 05-03 09:00"),
    ("set a reminder for 5pm: stand-up", "remind ‹stand-up› Sat 11-21 17:00"),
    (
        "Set a reminder to water the plants every Monday and Thursday at 7:30",
        "remind ‹water the plants› every Monday and Thursday at 07:30",
    ),
    ("set a reminder: dentist tomorrow at 10", "remind ‹dentist› Sun 11-22 10:00"),
    ("create a new reminder for tomorrow morning: bring the cake", "remind ‹bring the cake› Sun 11-22 09:00"),
    ("new reminder: dentist tomorrow at 10", "remind ‹dentist› Sun 11-22 10:00"),
    ("Reminder: dentist tomorrow at 10", "remind ‹dentist› Sun 11-22 10:00"),
    ("I need a reminder tonight at 8 to take out the bins", "remind ‹take out the bins› Sat 11-21 20:00"),
    ("ping me in half an hour to stretch", "remind ‹stretch› Sat 11-21 14:30"),
    ("⏰ remind me at noon to eat 🍞", "remind ‹eat 🍞› Sun 11-22 12:00"),
    ("REMIND ME TO CALL BOB TONIGHT", "remind ‹CALL BOB› Sat 11-21 20:00"),
    ("remind me every weekday at 8 to stand up", "remind ‹stand up› every weekday at 08:00"),
    ("every weekday at 8 remind me to stand up", "remind ‹stand up› every weekday at 08:00"),
    ("remind me every other Friday to put out the paper", "remind ‹put out the paper› every other Friday at 09:00"),
    ("remind me on the 1st of every month to pay the rent", "remind ‹pay the rent› every month on the 1st at 09:00"),
    ("remind me to drink water every 2 hours", "remind ‹drink water› every 2 hours"),
    ("remind me each morning to take my pills", "remind ‹take my pills› every day at 09:00"),
    (
        "remind me every year on 3 March that it’s Anna’s birthday",
        "remind ‹it’s Anna’s birthday› every year on 3 March at 09:00",
    ),
    ("remind me next Friday about the report, please", "remind ‹the report› Fri 11-27 09:00"),
    ("remind me the day after tomorrow to send the letter", "remind ‹send the letter› Mon 11-23 09:00"),
    ("Please remind me in an hour and a half to check the dough!", "remind ‹check the dough› Sat 11-21 15:30"),
    ("remind me in two weeks to renew the passport", "remind ‹renew the passport› Sat 12-05 14:00"),
    ("remind me on 5 December at 10 to buy a tree", "remind ‹buy a tree› Sat 12-05 10:00"),
    ("remind me 2026-12-05 10:00 to buy a tree", "remind ‹buy a tree› Sat 12-05 10:00"),
    ("remind me at the weekend to call mum", "remind ‹call mum› Sun 11-22 09:00"),
    ("remind me to buy tickets for Friday tomorrow at 9", "remind ‹buy tickets for Friday› Sun 11-22 09:00"),
    ("remind me tomorrow to book a table at 8pm", "ask back"),
    ("remind me tomorrow at 9 to book a table at 8pm", "remind ‹book a table at 8pm› Sun 11-22 09:00"),
    ("remind me tomorrow at lunch to call", "ask back"),
    ("remind me this time tomorrow to call", "ask back"),
    ("remind me again in 10 minutes to call Bob", "remind ‹call Bob› Sat 11-21 14:10"),
    ("I'd like you to remind me tomorrow at 8 to call Bob", "remind ‹call Bob› Sun 11-22 08:00"),
    ("Hi! Remind me tomorrow at 9 to call Anna. Thanks!", "remind ‹call Anna› Sun 11-22 09:00"),
    ("remind me tomorrow at 9 to call Dr. Smith", "remind ‹call Dr. Smith› Sun 11-22 09:00"),
    ("remind me at 5:15 p.m. to leave", "remind ‹leave› Sat 11-21 17:15"),
    (
        "Remind me tomorrow to call Bob. He wanted the invoice, he has no copy.",
        "remind ‹call Bob. He wanted the invoice, he has no copy› Sun 11-22 09:00",
    ),
    ("don't forget to remind me tomorrow to call Bob", "remind ‹call Bob› Sun 11-22 09:00"),
    ("Don’t forget to call Bob tomorrow", "remind ‹call Bob› Sun 11-22 09:00"),
    ("remember to call Bob tomorrow at 10", "remind ‹call Bob› Sun 11-22 10:00"),
    ("remind me: call Bob tomorrow at 9", "remind ‹call Bob› Sun 11-22 09:00"),
    ("remind me, please, to call Bob tomorrow at 9", "remind ‹call Bob› Sun 11-22 09:00"),
    ("hey can u remind me 2 hours from now to move the car", "remind ‹move the car› Sat 11-21 16:00"),
    ("Would you kindly remind me tonight to lock the door?", "remind ‹lock the door› Sat 11-21 20:00"),
    ("remind me to call Anna tomorrow at 9, will you?", "remind ‹call Anna› Sun 11-22 09:00"),
    ("remind me 5.12. 14:00 dentist", "remind ‹dentist› Sat 12-05 14:00"),
    ("remind me at 9 about the 10am meeting", "remind ‹the 10am meeting› Sun 11-22 09:00"),
    ("remind me on Monday that tomorrow is a holiday", "remind ‹tomorrow is a holiday› Mon 11-23 09:00"),
    (
        "remind me to ask Bob about last week’s numbers on Monday",
        "remind ‹ask Bob about last week’s numbers› Mon 11-23 09:00",
    ),
    (
        "remind me in 10 minutes to add task ideas and list them",
        "remind ‹add task ideas and list them› Sat 11-21 14:10",
    ),
    ("remind me on Sunday the 29th at 9 to call", "remind ‹call› Sun 11-29 09:00"),
    ("remind me first thing tomorrow to call", "remind ‹call› Sun 11-22 09:00"),
    ("remind me every 2nd day to pay", "remind ‹pay› every 2 days at 09:00"),
    ("remind me on the last day of the month to pay", "remind ‹pay› Mon 11-30 09:00"),
    ("don't let me forget to call Bob tomorrow", "remind ‹call Bob› Sun 11-22 09:00"),
    ("actually, remind me tomorrow at 9 to call Bob", "remind ‹call Bob› Sun 11-22 09:00"),
    ("Friday at 4pm remind me about the 3 o'clock meeting", "remind ‹the 3 o'clock meeting› Fri 11-27 16:00"),
    ("remind me to leave for the airport at 6:15am on Tuesday", "remind ‹leave for the airport› Tue 11-24 06:15"),
    ("remind me to take the bins out every Tuesday evening", "remind ‹take the bins out› every Tuesday at 19:00"),
    ("remind me on Saturday the 29th at 9 to call", "ask back"),
    ("remind me at 9 and 17 to take pills", "ask back"),
    (
        "remind me on Tuesday and Thursday at 9 to train",
        "remind ‹train› on Tue 24 November 2026 and Thu 26 November 2026 at 09:00",
    ),
    ("Can you remind me to call Anna tomorrow at 9 and Bob at 10?", "ask back"),
    ("remind me later to call Bob", "ask back"),
    ("remind me in 5 to check the pasta", "ask back"),
    ("remind me every Monday until Christmas to pay", "remind ‹pay› every Monday at 09:00, until Fri 25 December 2026"),
    ("remind me 30 minutes before the meeting", "remind ‹meeting› near ‹30 minutes before the meeting›"),
    // Something is missing, or the time is impossible: asked back.
    ("remind me to call Bob", "ask back"),
    ("remind me", "ask back"),
    ("remind me tomorrow at 9", "ask back"),
    ("can you set a reminder?", "ask back"),
    ("remind me on 30 February to skate", "ask back"),
    ("remind me on 2026-01-01 to skate", "ask back"),
    ("remind me on 5/12 at 10 to skate", "ask back"),
    ("remind me to hand it in by Monday", "ask back"),
    ("remind me to buy tickets for Friday", "ask back"),
    ("remind me every full moon at 9 to look up", "ask back"),
    ("remind me twice a day to drink", "ask back"),
    ("remember to water the plants", "ask back"),
    // Listing and taking back.
    ("list reminders", "list reminders"),
    ("List my reminders, please", "list reminders"),
    ("show me all my reminders", "list reminders"),
    ("what are my reminders?", "list reminders"),
    ("which reminders do I have set?", "list reminders"),
    ("do I have any reminders?", "list reminders"),
    ("reminders", "list reminders"),
    ("cancel reminder 2", "cancel #2"),
    ("delete reminder #3", "cancel #3"),
    ("please cancel reminder number two", "cancel #2"),
    ("can you delete my reminder about the dentist?", "cancel ‹the dentist›"),
    ("cancel the dentist reminder", "cancel ‹dentist›"),
    ("remove the reminder to call Bob", "cancel ‹call Bob›"),
    ("cancel my reminder", "ask back"),
    ("cancel all my reminders", "ask back"),
    ("cancel reminders", "ask back"),
    ("cancel reminder 2 and 3", "ask back"),
];

const FACTS: &[(&str, &str)] = &[
    ("remember that the wifi code is 1234", "remember ‹the wifi code is 1234›"),
    ("Please remember that the Wifi code is 1234!", "remember ‹the Wifi code is 1234›"),
    ("remember: the wifi code is 1234", "remember ‹the wifi code is 1234›"),
    ("Remember this: gate code 4711", "remember ‹gate code 4711›"),
    ("please remember my sister's birthday is 3 May", "remember ‹my sister's birthday is 3 May›"),
    ("remember Anna likes oolong tea", "remember ‹Anna likes oolong tea›"),
    ("note that the boiler was serviced in March", "remember ‹the boiler was serviced in March›"),
    ("Note: the boiler man is Mr. Kern", "remember ‹the boiler man is Mr. Kern›"),
    ("make a note that I parked on level 3", "remember ‹I parked on level 3›"),
    ("take note that Bob is allergic to nuts", "remember ‹Bob is allergic to nuts›"),
    ("keep in mind that I don't work on Fridays", "remember ‹I don't work on Fridays›"),
    ("don't forget that the rent is due on the 1st", "remember ‹the rent is due on the 1st›"),
    ("Don’t forget that Anna is vegan", "remember ‹Anna is vegan›"),
    ("could you remember that I prefer trains?", "remember ‹I prefer trains›"),
    ("note to self: the blue key opens the shed", "remember ‹the blue key opens the shed›"),
    ("remember about Anna that she likes tea", "remember ‹she likes tea› under ‹Anna›"),
    ("note about the car: the tyres are new", "remember ‹the tyres are new› under ‹the car›"),
    ("Remember that the wifi code is 1234. It changes every month.", "unclear"),
    ("Remember that the wifi code is 1234. It is new.", "remember ‹the wifi code is 1234. It is new›"),
    ("remember that “open sesame” is the password", "remember ‹“open sesame” is the password›"),
    ("remember that he said 'remind me tomorrow'", "remember ‹he said 'remind me tomorrow'›"),
    ("ok, remember that I moved to Kiel", "remember ‹I moved to Kiel›"),
    ("forget that the wifi code is 1234", "forget ‹the wifi code is 1234›"),
    ("please forget that Anna is vegan", "forget ‹Anna is vegan›"),
    ("what do you know about Anna", "know ‹Anna›"),
    ("What do you remember about the wifi?", "know ‹the wifi›"),
    ("tell me what you know about Bob", "know ‹Bob›"),
    ("Tell me everything you know about Bob.", "know ‹Bob›"),
    ("do you know anything about the boiler?", "know ‹the boiler›"),
    ("what did I tell you about the boiler?", "know ‹the boiler›"),
    ("can you tell me what you know about my sister?", "know ‹my sister›"),
];

const TASKS: &[(&str, &str)] = &[
    ("add task buy milk", "add ‹buy milk› active"),
    ("task add buy milk", "add ‹buy milk› active"),
    ("task add: call Anna", "add ‹call Anna› active"),
    ("task add", "ask back"),
    ("Add a task: Buy milk 🥛", "add ‹Buy milk 🥛› active"),
    ("please add a new task to call the plumber", "add ‹call the plumber› active"),
    ("could you add a task to call the plumber?", "add ‹call the plumber› active"),
    ("new task: write the report", "add ‹write the report› active"),
    ("create a task called Spring cleaning", "add ‹Spring cleaning› active"),
    ("todo: buy milk", "add ‹buy milk› active"),
    ("TODO buy milk", "add ‹buy milk› active"),
    ("to-do: buy milk", "add ‹buy milk› active"),
    ("task: buy milk (2 l)", "add ‹buy milk (2 l)› active"),
    ("add buy milk to my tasks", "add ‹buy milk› active"),
    ("add buy milk to my list", "add ‹buy milk› active"),
    ("add \"buy milk\" to my to-do list please", "add ‹\"buy milk\"› active"),
    ("put the tax return on my todo list", "add ‹the tax return› active"),
    ("add learn Italian to the backlog", "add ‹learn Italian› backlog"),
    ("add a task to the backlog: learn Italian", "add ‹learn Italian› backlog"),
    ("backlog: learn Italian", "add ‹learn Italian› backlog"),
    ("add call Anna as a task", "add ‹call Anna› active"),
    ("add task call Anna tomorrow at 9", "add ‹call Anna tomorrow at 9› active"),
    ("add a task", "ask back"),
    ("task 2 done", "done #2"),
    ("task done 2", "done #2"),
    ("task done buy milk", "done ‹buy milk›"),
    ("task done: buy milk", "done ‹buy milk›"),
    ("task 2 is done.", "done #2"),
    ("Task #2 is finished!", "done #2"),
    ("done: buy milk", "done ‹buy milk›"),
    ("Done with task 3", "done #3"),
    ("mark buy milk as done", "done ‹buy milk›"),
    ("please mark task 2 as complete", "done #2"),
    ("can you mark buy milk as done?", "done ‹buy milk›"),
    ("tick off buy milk", "done ‹buy milk›"),
    ("I finished the task buy milk", "done ‹buy milk›"),
    ("I've finished task two", "done #2"),
    ("I've finished my task buy milk", "done ‹buy milk›"),
    ("the task “buy milk” is done", "done ‹buy milk›"),
    ("complete task 4", "done #4"),
    ("what are my tasks", "list active"),
    ("What are my tasks?", "list active"),
    ("list tasks", "list active"),
    ("Show my todo list", "list active"),
    ("show me my open tasks please", "list active"),
    ("what's on my list?", "list active"),
    ("what tasks do I have?", "list active"),
    ("tasks", "list active"),
    ("show the backlog", "list backlog"),
    ("what's in my backlog?", "list backlog"),
];

const SMALL: &[(&str, &str)] = &[
    ("status", "status"),
    ("/status", "status"),
    ("Status?", "status"),
    ("What's your status?", "status"),
    ("help", "help"),
    ("Help!", "help"),
    ("what can you do?", "help"),
    ("/help", "help"),
    ("hi", "greeting"),
    ("Hello there!", "greeting"),
    ("Good morning 🌞", "greeting"),
    ("Thanks!", "thanks"),
    ("thank you very much", "thanks"),
    ("ok thanks", "thanks"),
    ("Perfect, thank you! 🙏", "thanks"),
    ("hi, what are my tasks?", "list active"),
    // Several commands in one message.
    ("add task buy milk\nadd task call Bob", "add ‹buy milk› active + add ‹call Bob› active"),
    (
        "- add task buy milk\n- remind me tomorrow at 9 to call Bob",
        "add ‹buy milk› active + remind ‹call Bob› Sun 11-22 09:00",
    ),
    ("Add task buy milk. Remember that Anna is vegan.", "add ‹buy milk› active + remember ‹Anna is vegan›"),
    ("task 2 done. what are my tasks?", "done #2 + list active"),
    (
        "remember that I like green tea and remind me tomorrow at 8 to buy some",
        "remember ‹I like green tea› + remind ‹buy some› Sun 11-22 08:00",
    ),
    (
        "remind me tomorrow at 9 to call Bob and add task write report",
        "remind ‹call Bob› Sun 11-22 09:00 + add ‹write report› active",
    ),
];

/// More sentences of a first day.
const DAY: &[(&str, &str)] = &[
    ("task done", "done it"),
    ("the work is done", "done the whole ‹the work›"),
    ("I finished the book", "done the whole ‹the book›"),
    ("done", "done it"),
    ("forget it", "nevermind"),
    ("forget that", "nevermind"),
    ("forget everything", "ask back"),
    ("noted", "ok"),
    ("never mind", "nevermind"),
    ("no", "no"),
    ("yes please", "yes"),
    ("🙂", "emoji"),
    ("what do you know?", "know all"),
    ("I finished t2", "done #2"),
    ("done t2", "done #2"),
    ("I'm done with task 3", "done #3"),
    ("renew passport is done", "done the whole ‹renew passport›"),
    ("it's done", "done it"),
    ("I bought the milk, it is done", "unclear"),
    ("delete buy milk", "delete ‹buy milk›"),
    ("drop task 2", "drop #2"),
    ("delete the task buy milk", "drop ‹buy milk›"),
    ("get rid of buy milk", "delete ‹buy milk›"),
    ("delete 2", "ask back"),
    ("delete it", "delete it"),
    ("cancel it", "delete it"),
    ("rename buy milk to buy oat milk", "rename ‹buy milk› to ‹buy oat milk›"),
    ("rename task 2 to write to Bob", "rename #2 to ‹write to Bob›"),
    ("rename it to tidy up", "rename it to ‹tidy up›"),
    ("move buy milk to the backlog", "move ‹buy milk› to backlog"),
    ("put task 3 in the backlog", "move #3 to backlog"),
    ("bring buy milk back to my tasks", "move ‹buy milk› to active"),
    ("move it to Friday", "postpone it thing to Fri 11-27"),
    ("postpone the dentist reminder until tomorrow at 8", "postpone ‹dentist› reminder to Sun 11-22 08:00"),
    ("postpone task 2 to Monday", "postpone #2 task to Mon 11-23"),
    ("push call Bob to next Friday", "postpone ‹call Bob› thing to Fri 11-27"),
    ("snooze", "snooze to Sat 11-21 14:10"),
    ("snooze for half an hour", "snooze to Sat 11-21 14:30"),
    ("snooze it until tomorrow at 9", "snooze to Sun 11-22 09:00"),
    ("snooze reminder 2 for 20 minutes", "postpone #2 reminder to Sat 11-21 14:20"),
    ("what's on today?", "agenda of today"),
    ("what do I have tomorrow?", "agenda of tomorrow"),
    ("what time is it?", "time"),
    ("what day is it today", "date"),
    ("what's 12*7", "sum 12×7 = 84"),
    ("forget the wifi code", "forget ‹wifi code›"),
    ("forget about my cat's name", "forget ‹my cat's name›"),
    ("undo that", "undo"),
    ("take it back", "undo"),
    ("ok", "ok"),
    ("Thanks, bye!", "bye"),
    ("bye", "bye"),
    ("Good night!", "night"),
    ("what do you know about me?", "know all"),
    ("remmeber that I like tea", "remember ‹I like tea›"),
    ("remind me tommorow at 9 to call Bob", "remind ‹call Bob› Sun 11-22 09:00"),
];

/// Sentences that sound like commands but aren't.
const NO_COMMANDS: &[(&str, &str)] = &[
    ("don't remind me tomorrow at 9", "question"),
    ("Don’t remind me of that", "question"),
    ("please don't remind me tomorrow", "question"),
    ("do not remember that the code is 1234", "question"),
    ("do not remind me tomorrow", "question"),
    ("never remind me of that again", "unclear"),
    ("never remember that I said this", "unclear"),
    ("I remember that the wifi code is 1234", "unclear"),
    ("I remember that we met in Rome", "unclear"),
    ("do you remember when we met?", "question"),
    ("do you remember that the code is 1234?", "question"),
    ("remember when we went to Rome?", "question"),
    ("remember when we went to Rome", "unclear"),
    ("remember that time we got lost in Rome", "unclear"),
    ("remember that?", "question"),
    ("remember that the code is 1234?", "question"),
    ("remember the time we got lost in Rome", "unclear"),
    ("remember me", "unclear"),
    ("remember Anna?", "question"),
    ("she reminded me to call Bob tomorrow", "unclear"),
    ("this reminds me of Rome", "unclear"),
    ("you reminded me tomorrow at 9", "unclear"),
    ("tomorrow at 9 she will remind me to call Bob", "unclear"),
    ("why did you remind me yesterday?", "question"),
    ("my task list is too long", "unclear"),
    ("my tasks are killing me", "unclear"),
    ("he said 'remind me tomorrow'", "unclear"),
    ("'remind me tomorrow to call' is what he said", "unclear"),
    ("“Remember that the code is 1234”", "unclear"),
    ("\"add task buy milk\"", "unclear"),
    ("Remind me tomorrow to call Bob, she said", "unclear"),
    ("\"Remind me tomorrow to call Bob\", he said.", "unclear"),
    ("if I say remind me tomorrow, what do you do?", "question"),
    ("when I say remind me tomorrow at 9 to call, I mean it", "question"),
    ("what does remind me mean", "question"),
    ("what happens if I say add task buy milk?", "question"),
    ("remind me is a phrase I use tomorrow", "unclear"),
    ("remind me what Anna said yesterday", "question"),
    ("can you remind me what the wifi code is?", "question"),
    ("remind me who is coming tomorrow", "question"),
    ("remind me of the wifi code", "question"),
    ("remind me when I get home to call Bob", "unclear"),
    ("remind me if it rains tomorrow", "unclear"),
    ("remind me tomorrow if it rains", "unclear"),
    ("remind Anna tomorrow at 9 to call Bob", "unclear"),
    ("remind me tomorrow to call Anna and what's the weather?", "unclear"),
    ("Reminder: your appointment is on Friday at 10:00", "unclear"),
    ("Fwd: remind me tomorrow to call Bob", "unclear"),
    ("> remind me tomorrow to call Bob", "unclear"),
    ("```\nremind me tomorrow to call Bob\n```", "unclear"),
    ("`remind me tomorrow to call Bob`", "unclear"),
    ("From: Anna\nremember that the code is 1234", "unclear"),
    ("I already added the task", "unclear"),
    ("I added task buy milk", "unclear"),
    ("should I add a task for that?", "question"),
    ("add a task for that?", "question"),
    ("add a task is what he said", "unclear"),
    ("add it to my tasks", "unclear"),
    ("todo lists are tiring", "unclear"),
    ("is task 2 done?", "question"),
    ("task 2 done?", "question"),
    ("task 2 is not done", "unclear"),
    ("task add is what he said", "unclear"),
    ("task done?", "question"),
    ("tasks add up", "unclear"),
    ("task 2 is almost done", "unclear"),
    ("mark my words", "unclear"),
    ("mark buy milk as done when I'm home", "unclear"),
    ("forget what I said", "unclear"),
    ("forget that I asked", "unclear"),
    ("did you forget that the code is 1234?", "question"),
    ("should I cancel reminder 2?", "question"),
    ("cancel reminder 2?", "question"),
    ("cancel my flight", "unclear"),
    ("I cancelled reminder 2", "unclear"),
    ("Status quo is fine", "unclear"),
    ("status of the project: delayed", "unclear"),
    ("help yourself", "unclear"),
    ("please help me write a letter", "unclear"),
    ("can you help me with my taxes?", "unclear"),
    ("thanks for nothing, remind me never to ask", "unclear"),
    ("thank you for adding the task", "unclear"),
    ("good morning sunshine song lyrics", "unclear"),
    ("when is Anna's birthday?", "question"),
    ("What is the wifi code?", "question"),
    ("Hi! What is the wifi code?", "question"),
    ("who knows about Anna", "question"),
    ("write me a poem", "unclear"),
    ("note the time", "unclear"),
    ("remember you are only a machine", "unclear"),
    ("Add task buy milk. What is the weather tomorrow?", "unclear"),
    ("Remember that Anna likes poems. Then write her one.", "unclear"),
    ("Remind me tomorrow to call Bob. And write him a letter.", "unclear"),
    ("the list reminders command is nice", "unclear"),
    ("list tasks is slow", "unclear"),
    ("note that down please", "unclear"),
    ("remember this", "unclear"),
    ("mark all tasks as done", "unclear"),
    ("Mark task 1 and 2 as done", "unclear"),
    ("remind me maybe tomorrow to call", "unclear"),
    ("Maybe remind me tomorrow at 9 to call", "unclear"),
    ("actually don't remind me tomorrow", "question"),
    ("would you like to remind me tomorrow at 9 to call?", "unclear"),
    ("You can remind me tomorrow", "unclear"),
    ("Anna, remember that the code is 1234", "unclear"),
    ("What's the status of the report?", "question"),
    ("list tasks for Anna", "unclear"),
    ("I told you to remind me tomorrow at 9 to call", "unclear"),
    ("you should remind me tomorrow", "unclear"),
    ("no need to remind me tomorrow", "unclear"),
    ("my mother: remind me tomorrow to call", "unclear"),
    ("would you remember that the code is 1234 if I asked?", "question"),
    ("what if I ask you to remind me tomorrow at 9?", "question"),
    ("Anna wrote: remember that the code is 1234", "unclear"),
    ("tell me a story about Anna", "unclear"),
    ("tomorrow at 9", "unclear"),
    ("call Bob tomorrow at 9", "unclear"),
    ("I will be there in 20 minutes", "unclear"),
    ("add salt to the soup", "unclear"),
    ("add 5 to 7", "unclear"),
    ("delete everything", "unclear"),
    ("", "unclear"),
    ("???", "unclear"),
];

#[test]
fn reminders_are_understood() {
    check_all(REMINDERS);
}

#[test]
fn facts_are_understood() {
    check_all(FACTS);
}

#[test]
fn tasks_are_understood() {
    check_all(TASKS);
}

#[test]
fn a_first_days_words_are_understood() {
    check_all(DAY);
}

#[test]
fn what_is_near_a_command_is_named_and_what_is_not_is_left() {
    let near = |text: &str| match find_nearest(text, saturday()) {
        Some(Near::Form(form)) => form,
        Some(Near::Ask(_)) => "ask".to_owned(),
        None => String::new(),
    };
    for (text, form) in [
        ("I'm allergic to penicillin", "remember that I'm allergic to penicillin"),
        ("My sister lives in Kiel.", "remember that My sister lives in Kiel"),
        ("wake me at 7", "remind me at 7 to wake up"),
        ("Wake me up tomorrow at 6:30!", "remind me tomorrow at 6:30 in the morning to wake up"),
        ("set an alarm for 7", "remind me at 7: alarm"),
        ("set an alarm", "ask"),
        ("dentist on Friday at 3pm", "remind me: dentist on Friday at 3pm"),
        ("call Bob tomorrow at 9", "remind me: call Bob tomorrow at 9"),
        ("I need to buy stamps", "add task buy stamps"),
        ("I have to call mum tomorrow at 5pm", "remind me to call mum tomorrow at 5pm"),
        ("buy milk", "add task buy milk"),
    ] {
        assert_eq!(near(text), form, "{text}");
    }
    for text in [
        "write me a poem",
        "what is the weather?",
        "I will be there in 20 minutes",
        "don't call Bob tomorrow at 9",
        "she said I'm allergic to nuts",
        "> I'm allergic to nuts",
        "get me the news",
        "it is raining",
        "you are great",
        "I think Bob likes Anna",
        "tomorrow at 9",
        "",
    ] {
        assert_eq!(near(text), "", "{text}");
    }
}

#[test]
fn small_talk_and_several_commands_are_understood() {
    check_all(SMALL);
}

#[test]
fn what_only_sounds_like_a_command_is_left_alone() {
    check_all(NO_COMMANDS);
}

#[test]
fn the_tables_hold_what_they_promise() {
    let understood: usize = [REMINDERS, FACTS, TASKS, SMALL].iter().map(|table| table.len()).sum();
    assert!(understood >= 140, "{understood}");
    assert!(NO_COMMANDS.len() >= 50);
    assert!(NO_COMMANDS.iter().all(|(_, form)| matches!(*form, "unclear" | "question")));
}

#[test]
fn a_question_is_handed_on_in_the_persons_words() {
    let parsed = parse(" When is Anna’s birthday? ", saturday());
    assert_eq!(parsed, ParsedMessage::Question("When is Anna’s birthday?".to_owned()));
}

#[test]
fn what_is_asked_back_says_what_is_missing() {
    let question = |text: &str| match parse(text, saturday()) {
        ParsedMessage::Commands(commands) => match &commands[..] {
            [OfflineCommand::AskBack { question, .. }] => question.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let with_a_time = "I haven't set a reminder yet: please say a time, such as “tomorrow at 9” or “in 20 minutes”.";
    let with_another = "I haven't set a reminder yet: please send it again with another time.";
    let table = [
        ("remind me to call Bob", format!("When should I remind you to call Bob? {with_a_time}")),
        ("remind me about the dentist", format!("When should I remind you about the dentist? {with_a_time}")),
        (
            "remind me",
            "What should I remind you of, and when? I haven't set a reminder yet: please send it again with both, such as “remind me \
             tomorrow at 9 to call Anna”."
                .to_owned(),
        ),
        (
            "remind me in a bit to make tea",
            "I didn't understand the time “in a bit to make tea”. I haven't set a reminder yet: please send it again with one such as \
             “in 20 minutes”."
                .to_owned(),
        ),
        (
            "remind me tomorrow at 9",
            "What should I remind you of tomorrow at 9? I haven't set a reminder yet: please say what to do."
                .to_owned(),
        ),
        ("remind me on 30 February to skate", format!("“on 30 February” is not a day of the calendar. {with_another}")),
        ("remind me on 2026-01-01 to skate", format!("“on 2026-01-01” has already passed. {with_another}")),
        (
            "remind me on 5/12 at 10 to skate",
            format!(
                "“on 5/12 at 10” could be Saturday, 5 December 2026 at 10:00 or Wednesday, 12 May 2027 at 10:00; please say which. {with_another}"
            ),
        ),
        ("remind me today to skate", format!("“today” needs a time of day. {with_another}")),
    ];
    for (text, asked) in table {
        assert_eq!(question(text), asked);
    }
    assert!(question("add a task").starts_with("What is the task? I haven't written one down yet"));
    assert!(question("cancel my reminders").starts_with("Which reminder should I cancel? I haven't changed anything."));
}

#[test]
fn why_a_message_is_unclear_is_said() {
    let why = |text: &str| match parse(text, saturday()) {
        ParsedMessage::Unclear { why } => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why("write me a poem"), NO_COMMAND);
    assert_eq!(why("> add task buy milk"), QUOTED);
    assert_eq!(why(&"add task buy milk ".repeat(200)), TOO_LONG);
    assert_eq!(why(&"hi.\n".repeat(21)), TOO_LONG);
    assert_eq!(why("add task buy milk. Then write me a poem."), IN_PART);
}

#[test]
fn reminders_at_the_hours_that_clocks_change() {
    let check = |now: DateTime<Tz>, text: &str, key: &str, utc: &str| {
        let civil = |text| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap();
        let ParsedMessage::Commands(commands) = parse(text, now) else { panic!("{text}") };
        let [OfflineCommand::Remind { when: When::At(slot), .. }] = &commands[..] else { panic!("{commands:?}") };
        assert_eq!((slot.civil, slot.at.naive_utc()), (civil(key), civil(utc)), "{text}");
    };
    let (berlin, new_york) = ("Europe/Berlin".parse::<Tz>().unwrap(), "America/New_York".parse::<Tz>().unwrap());
    let spring = local(berlin, "2026-03-28 14:00");
    check(spring, "remind me tomorrow at 02:30 to look at the clock", "2026-03-29 02:30", "2026-03-29 01:30");
    check(spring, "remind me on 29 March at 2:30 in the morning to look", "2026-03-29 02:30", "2026-03-29 01:30");
    let autumn = local(berlin, "2026-10-24 14:00");
    check(autumn, "remind me tomorrow at 02:30 to look at the clock", "2026-10-25 02:30", "2026-10-25 00:30");
    check(
        local(new_york, "2026-03-07 14:00"),
        "remind me tomorrow at 2:30am to look",
        "2026-03-08 02:30",
        "2026-03-08 07:30",
    );
    check(
        local(new_york, "2026-11-20 14:00"),
        "remind me tomorrow at 9 to look",
        "2026-11-21 09:00",
        "2026-11-21 14:00",
    );
}

fn is_remind(parsed: &ParsedMessage) -> bool {
    matches!(parsed, ParsedMessage::Commands(commands) if commands.iter().any(|command| matches!(command, OfflineCommand::Remind { .. })))
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC{0,120}") {
        parse(&text, saturday());
    }

    #[test]
    fn any_mix_of_the_grammars_words_is_read_without_a_panic(
        words in prop::collection::vec(prop::sample::select(VOCABULARY.to_vec()), 0..14),
        glue in prop::sample::select(vec![" ", "", "\n"]),
    ) {
        if let ParsedMessage::Commands(commands) = parse(&words.join(glue), saturday()) {
            prop_assert!(!commands.is_empty());
        }
    }

    /// Words without a time, after each way to ask.
    #[test]
    fn without_a_time_nothing_is_a_reminder(
        opener in prop::sample::select(vec!["remind me to", "can you remind me to", "set a reminder to", "don't forget to", "remind me about"]),
        words in prop::collection::vec(prop_oneof![prop::sample::select(TIMELESS.to_vec()).prop_map(str::to_owned), "[qxzvj]{2,6}"], 1..12),
        end in prop::sample::select(vec!["", ".", "?", ", please"]),
    ) {
        let text = format!("{opener} {}{end}", words.join(" "));
        prop_assert!(!is_remind(&parse(&text, saturday())), "{text}");
    }

    /// The texts of a command are the person's own words, taken from the message.
    #[test]
    fn what_is_kept_is_what_was_said(words in prop::collection::vec(prop::sample::select(TIMELESS.to_vec()), 1..8)) {
        let said = format!("zebra {}", words.join(" "));
        let text = format!("Remind me tomorrow at 9 to {said}");
        let ParsedMessage::Commands(commands) = parse(&text, saturday()) else { return Err(TestCaseError::reject("not a command")) };
        for command in commands {
            if let OfflineCommand::Remind { what, .. } = command {
                prop_assert_eq!(what, said.clone());
            }
        }
    }
}

const TIMELESS: &[&str] = &[
    "call", "Anna", "the", "and", "Bob", "at", "on", "in", "for", "to", "every", "guest", "milk", "of", "with", "half",
    "his", "wifi", "code", "add", "task", "remember", "that", "is", "my", "list", "this", "next", "last", "by", "a",
    "house", "soup", "5%", "221B", "v1.2", "C++", "🥛",
];

const VOCABULARY: &[&str] = &[
    "remind",
    "me",
    "remember",
    "that",
    "note",
    ":",
    "add",
    "task",
    "to",
    "my",
    "list",
    "done",
    "mark",
    "as",
    "cancel",
    "reminder",
    "#",
    "2",
    "tomorrow",
    "at",
    "9",
    "every",
    "day",
    "what",
    "do",
    "you",
    "know",
    "about",
    "forget",
    "don't",
    "please",
    "can",
    "and",
    "then",
    ",",
    ".",
    "?",
    "!",
    "'",
    "“",
    "hi",
    "thanks",
    "said",
    "he",
    "is",
    "the",
    "backlog",
    "status",
    "help",
    "stop",
    "reminding",
    "in",
    "20",
    "minutes",
    "🙂",
];

#[test]
fn what_to_do_when_it_was_missed_is_said_after_the_reminder() {
    check_all(&[
        (
            "remind me every day at 9 to stretch, skip it if missed",
            "remind ‹stretch› every day at 09:00, skipped if missed",
        ),
        (
            "Remind me to stretch every day at 9, but skip it if you missed it.",
            "remind ‹stretch› every day at 09:00, skipped if missed",
        ),
        (
            "remind me to stretch every day at 9 and skip missed ones",
            "remind ‹stretch› every day at 09:00, skipped if missed",
        ),
        (
            "remind me every monday at 8 to bring out the bins, only tell me if missed",
            "remind ‹bring out the bins› every Monday at 08:00, only told of if missed",
        ),
        (
            "remind me tomorrow at 9 to call Anna - just tell me if you missed it, thanks",
            "remind ‹call Anna› Sun 11-22 09:00, only told of if missed",
        ),
        ("remind me tomorrow at 9 to call Anna, even if it's late", "remind ‹call Anna› Sun 11-22 09:00"),
        (
            "Remind me every day at 9 to stretch. Skip it if missed.",
            "remind ‹stretch› every day at 09:00, skipped if missed",
        ),
        // The words can be the text itself, or be incomplete.
        ("remind me tomorrow at 9 to tell Bob if I missed it", "remind ‹tell Bob if I missed it› Sun 11-22 09:00"),
        ("remind me to skip it if missed tomorrow at 9", "remind ‹skip it if missed› Sun 11-22 09:00"),
        ("skip it if missed", "unclear"),
        ("remember that tea is at five. Skip it if missed.", "unclear"),
    ]);
}

#[test]
fn a_task_is_added_with_its_last_day() {
    check_all(&[
        ("add task renew passport due friday", "add ‹renew passport› active until Fri 11-27"),
        ("Add a task: renew passport, due on 28 November.", "add ‹renew passport› active until Sat 11-28"),
        ("todo: renew passport due today", "add ‹renew passport› active until Sat 11-21"),
        ("add task pay the rent due 2026-11-21", "add ‹pay the rent› active until Sat 11-21"),
        ("add write the report due by monday to my backlog", "add ‹write the report› backlog until Mon 11-23"),
        // "Saturday", said on a Saturday, could be today.
        ("add task clean up due saturday", "ask back"),
        ("add task clean up due yesterday", "ask back"),
        ("add task collect what is due", "add ‹collect what is due› active"),
        ("add task due diligence", "add ‹due diligence› active"),
    ]);
}

#[test]
fn reminders_end_and_change_in_plain_words() {
    check_all(&[
        ("stop", "stop the last"),
        ("Stop that!", "stop the last"),
        ("stop reminding me", "stop the last"),
        ("don't remind me any more", "stop the last"),
        ("don't remind me about that again", "stop the last"),
        ("Don't remind me about the vitamins any more", "cancel ‹vitamins›"),
        ("please don't remind me to take the vitamins anymore", "cancel ‹take the vitamins›"),
        ("stop reminding me about the vitamins", "cancel ‹vitamins›"),
        ("cancel the vitamins one", "cancel ‹vitamins›"),
        ("delete my vitamins one please", "cancel ‹vitamins›"),
        ("change reminder 1 to 9am", "postpone #1 reminder to 09:00 alone"),
        ("change the vitamins reminder to 9am", "postpone ‹vitamins› reminder to 09:00 alone"),
        ("change the time of reminder 2 to friday", "postpone #2 reminder to Fri 11-27"),
        ("move reminder 1 to tomorrow at 8", "postpone #1 reminder to Sun 11-22 08:00"),
        ("change my mind", "unclear"),
        ("move my reminders here", "all reminders here"),
    ]);
}

#[test]
fn a_reminder_can_be_set_by_the_time_of_a_thing() {
    check_all(&[
        ("remind me 15 minutes before the meeting", "remind ‹meeting› near ‹15 minutes before the meeting›"),
        (
            "remind me 15 minutes before the meeting to print the slides",
            "remind ‹print the slides› near ‹15 minutes before the meeting›",
        ),
        ("remind me to pack the day before the dentist", "remind ‹pack› near ‹the day before the dentist›"),
        ("remind me to write it down an hour after the call", "remind ‹write it down› near ‹an hour after the call›"),
        ("remind me an hour after the call tomorrow to write", "ask back"),
        ("remind me half an hour before noon to eat", "remind ‹eat› Sun 11-22 11:30"),
        ("remind me 3 days after 12 January to pay", "remind ‹pay› Fri 01-15 09:00"),
        ("remind me after lunch to rest", "unclear"),
    ]);
}

#[test]
fn a_car_is_looked_for_where_it_was_parked_and_its_keys_are_not() {
    for question in ["where did I leave the car?", "where did i park my van"] {
        assert_eq!(classify_question(question).1, "parked", "{question}");
    }
    for question in ["where did I put the car keys?", "where did I leave the van's papers", "where is my car"] {
        assert_ne!(classify_question(question).1, "parked", "{question}");
    }
}
