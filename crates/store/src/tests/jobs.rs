use reveille_base::schedule::Slot;

use super::*;

fn slot(hour: u32) -> Slot {
    let civil = chrono::NaiveDate::from_ymd_opt(2026, 11, 21).unwrap().and_hms_opt(hour, 0, 0).unwrap();
    Slot { civil, at: civil.and_utc() }
}

fn plan(when: &str, gate: &str) -> JobPlan {
    JobPlan {
        name: "a".to_owned(),
        read_from: when.to_owned(),
        gate: gate.to_owned(),
        rule: None,
        zone: "UTC".to_owned(),
        next: Some(slot(15)),
    }
}

fn looked(hour: u32, state: JobState, time: MessageTime) -> JobLook {
    let run = NewJobRun { slot: Some(slot(hour).civil), state, found: None, output: Some("out".to_owned()) };
    JobLook {
        name: "a".to_owned(),
        next: Some(slot(hour + 1)),
        runs: vec![run],
        seen: Some("{}".to_owned()),
        ended: Some(Ok(())),
        message: Some((outgoing(ChatRef::from_telegram(7), "found"), time)),
    }
}

fn said(world: &World) -> i64 {
    world.value("SELECT count(*) FROM outgoing_messages")
}

#[test]
fn a_plan_that_is_as_it_was_stays_and_another_gate_begins_anew() {
    let mut world = World::new();
    world.held(at(0)).jobs_mut().plan_jobs(&[plan("at 15", "watch: x")], ("k", "s1")).unwrap();
    world.held(at(1)).jobs_mut().record_job_look(&looked(15, JobState::Nothing, MessageTime::Now)).unwrap();
    world.held(at(2)).jobs_mut().plan_jobs(&[plan("at 15", "watch: x")], ("k", "s2")).unwrap();
    let row = world.store.jobs().list_jobs().unwrap().remove(0);
    assert_eq!((row.next, row.seen.as_deref()), (Some(slot(16)), Some("{}")), "it goes on where it was");
    world.held(at(3)).jobs_mut().plan_jobs(&[plan("at 15", "watch: y")], ("k", "s3")).unwrap();
    let row = world.store.jobs().list_jobs().unwrap().remove(0);
    assert_eq!((row.next, row.seen), (Some(slot(16)), None));
    world.held(at(4)).jobs_mut().plan_jobs(&[plan("at 16", "watch: y")], ("k", "s4")).unwrap();
    assert_eq!(world.store.jobs().list_jobs().unwrap()[0].next, Some(slot(15)));
    assert_eq!(world.store.maintenance().find_handled_value("k").unwrap().as_deref(), Some("s4"));
    world.held(at(5)).jobs_mut().plan_jobs(&[], ("k", "")).unwrap();
    assert!(world.store.jobs().list_jobs().unwrap().is_empty());
    assert!(!world.store.jobs().has_due_job(at(86_400)).unwrap());
}

#[test]
fn a_slot_is_told_once_and_what_waits_is_told_later() {
    let mut world = World::new();
    world.held(at(0)).jobs_mut().plan_jobs(&[plan("at 15", "")], ("k", "")).unwrap();
    for _ in 0..2 {
        world.held(at(1)).jobs_mut().record_job_look(&looked(15, JobState::Told, MessageTime::Now)).unwrap();
    }
    assert_eq!((said(&world), world.store.jobs().job_runs(Some("a"), 9).unwrap().len()), (1, 1));
    world.held(at(2)).jobs_mut().record_job_look(&looked(16, JobState::Told, MessageTime::AfterQuietHours)).unwrap();
    assert!(said(&world) == 1 && world.store.jobs().has_held_job_message().unwrap());
    assert!(world.held(at(3)).jobs_mut().say_held_job_messages().unwrap());
    assert!(!world.held(at(4)).jobs_mut().say_held_job_messages().unwrap());
    assert_eq!(said(&world), 2);
}

#[test]
fn a_run_is_over_once_and_one_whose_cycle_was_given_up_has_failed() {
    let mut world = World::new();
    world.held(at(0)).jobs_mut().plan_jobs(&[plan("at 15", "")], ("k", "")).unwrap();
    for hour in [15, 16] {
        world
            .held(at(1))
            .jobs_mut()
            .record_job_look(&JobLook { message: None, ..looked(hour, JobState::Open, MessageTime::Now) })
            .unwrap();
    }
    let runs: Vec<i64> = world.store.jobs().waiting_job_runs().unwrap().iter().map(|run| run.id).collect();
    for (cycle, run) in ["c1", "c2"].iter().zip(&runs) {
        world.begin(cycle);
        world.held(at(2)).journal_mut().apply_changes(cycle, &[Change::TakeUpJob { run: *run }]).unwrap();
    }
    assert!(world.store.jobs().waiting_job_runs().unwrap().is_empty());
    let end = JobEnd {
        run: runs[0],
        state: JobState::Worked,
        output: "done".to_owned(),
        message: Some((outgoing(ChatRef::from_telegram(7), "done"), MessageTime::Now)),
    };
    for _ in 0..2 {
        world.held(at(3)).journal_mut().apply_changes("c1", &[Change::EndJob(end.clone())]).unwrap();
    }
    assert_eq!(said(&world), 1);
    world.end("c2", CycleState::Failed, &[]);
    assert_eq!(world.held(at(10)).jobs_mut().fail_lost_job_runs().unwrap(), [("a".to_owned(), runs[1])]);
    assert_eq!(
        (world.store.jobs().list_jobs().unwrap()[0].failures, world.store.jobs().has_open_job_run("a").unwrap()),
        (1, false)
    );
    assert_eq!(world.store.jobs().last_job_output("a", runs[1]).unwrap().as_deref(), Some("done"));
}

#[test]
fn runs_are_bounded_and_their_words_can_be_forgotten() {
    let mut world = World::new();
    world.held(at(0)).jobs_mut().plan_jobs(&[plan("at 15", "")], ("k", "")).unwrap();
    for n in 0..210 {
        let mut look = JobLook { message: None, ..looked(15, JobState::Nothing, MessageTime::Now) };
        look.runs[0].slot = None;
        look.runs[0].output = Some(format!("CANARY {n}"));
        look.seen = Some("{\"kind\":\"text\",\"hash\":\"\",\"text\":\"CANARY\"}".to_owned());
        world.held(at(n)).jobs_mut().record_job_look(&look).unwrap();
    }
    assert_eq!(world.value::<i64>("SELECT count(*) FROM job_runs"), 200);
    let holds = |text: &str, _: bool| text.contains("CANARY");
    let held = world.store.retention().find_held_words(&holds).unwrap();
    assert_eq!((held.job_runs.len(), held.jobs.as_slice()), (200, ["a".to_owned()].as_slice()));
    world.held(at(300)).retention_mut().forget_words(&held, &holds).unwrap();
    assert!(world.store.retention().find_held_words(&holds).unwrap().is_empty());
}

#[test]
fn a_run_that_a_person_asks_for_is_due_whatever_is_planned() {
    let mut world = World::new();
    assert!(!world.store.jobs_mut().ask_for_job("a", at(0)).unwrap(), "its file wasn't read yet");
    world.held(at(1)).jobs_mut().plan_jobs(&[plan("at 15", "")], ("k", "")).unwrap();
    assert!(world.store.jobs().has_due_job(at(2)).unwrap() && world.store.jobs().list_jobs().unwrap()[0].is_due(at(2)));
    world.held(at(3)).jobs_mut().record_job_look(&looked(15, JobState::Nothing, MessageTime::Now)).unwrap();
    assert!(!world.store.jobs().has_due_job(at(4)).unwrap());
}
