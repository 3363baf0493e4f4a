//! How fast the memory is indexed and searched, at 100,000 entries.

use std::time::{Duration, Instant};

use reveille::index::{Index, QueryVector, SearchQuery};

use super::{
    Orders,
    draw::Draw,
    fill::{refresh, store},
    say,
    support::env::TestEnv,
    worlds::{Question, worlds},
};

const ENTRIES: usize = 100_000;
const MODEL: &str = "made-up";
const DIMS: usize = 384;
const WARM_QUERIES: usize = 300;
const COMMANDS: usize = 30;
/// What is promised.
const MIN_ENTRIES_A_SECOND: f64 = 20_000.0;
const MAX_WARM: Duration = Duration::from_millis(5);
const MAX_COMMAND: Duration = Duration::from_millis(30);

/// Returns whether every bound was kept.
pub(crate) fn run(orders: &Orders) -> bool {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    say("making 100,000 entries");
    let questions = make(&env, orders.seed);
    let workspace = env.workspace();
    let file = workspace.join("index.db");
    std::fs::remove_file(&file).ok();
    let mut index = Index::open(&file).unwrap();
    let begin = Instant::now();
    let entries = refresh(&mut index, &workspace);
    let took = begin.elapsed();
    let mut draw = Draw::new(orders.seed);
    let warm_words = warm(&mut index, &questions, None);
    say("making 100,000 vectors");
    put_vectors(&mut index, &mut draw);
    let vector = direction(&mut draw);
    let warm_vectors = warm(&mut index, &questions, Some(&vector));
    let begin = Instant::now();
    refresh(&mut index, &workspace);
    let idle = begin.elapsed();
    drop(index);
    let commands: Vec<Duration> = questions
        .iter()
        .take(COMMANDS)
        .map(|question| {
            let begin = Instant::now();
            env.wake(&["memory", "search", &question.text]).ok();
            begin.elapsed()
        })
        .collect();
    let rate = entries as f64 / took.as_secs_f64();
    super::print(&format!(
        "\nSpeed, {entries} entries:\n\n| figure | least / median / 95 of 100 / most | bound of the median |\n| --- | --- | --- |\n\
         | indexed by keywords | {rate:.0} entries a second | {MIN_ENTRIES_A_SECOND} |\n\
         | looked at again, nothing new | {:.2} ms | |\n\
         | a query in a warm process, by words | {} | 5 ms |\n\
         | the same by words and vectors | {} | 5 ms |\n\
         | `wake memory search` as a whole, by words | {} | 30 ms |\n",
        ms(idle),
        spread(&warm_words),
        spread(&warm_vectors),
        spread(&commands),
    ));
    let is_kept = rate >= MIN_ENTRIES_A_SECOND
        && median(&warm_words) <= MAX_WARM
        && median(&warm_vectors) <= MAX_WARM
        && median(&commands) <= MAX_COMMAND;
    if !is_kept {
        say("missed: a bound of speed");
    }
    is_kept
}

/// Fills the workspace with worlds from one seed after the other. Returns questions about the last of them.
fn make(env: &TestEnv, seed: u64) -> Vec<Question> {
    let (mut entries, mut questions) = (0, Vec::new());
    for round in 0.. {
        for world in worlds(seed + 1 + round) {
            store(&world, &env.workspace().join("messages.db"));
            entries += world.turns.len();
            for (path, text) in &world.documents {
                let path = env.brain().join(path.replace("memory/", &format!("memory/{}-{round}/", world.name)));
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
                entries += text.lines().filter(|line| line.starts_with("- ")).count();
            }
            if questions.len() < WARM_QUERIES {
                questions.extend(world.questions);
            }
        }
        if entries >= ENTRIES {
            break;
        }
    }
    Draw::new(seed).shuffle(&mut questions);
    questions.truncate(WARM_QUERIES);
    questions
}

fn put_vectors(index: &mut Index, draw: &mut Draw) {
    loop {
        let missing = index.without_vector(MODEL, 5_000).unwrap();
        if missing.is_empty() {
            return;
        }
        let made: Vec<_> = missing.into_iter().map(|(key, _)| (key, direction(draw))).collect();
        index.put_vectors(MODEL, DIMS, &made).unwrap();
    }
}

fn direction(draw: &mut Draw) -> Vec<f32> {
    (0..DIMS).map(|_| draw.below(2_001) as f32 / 1_000.0 - 1.0).collect()
}

fn warm(index: &mut Index, questions: &[Question], vector: Option<&[f32]>) -> Vec<Duration> {
    let mut search = |question: &Question| {
        let query = SearchQuery {
            text: &question.text,
            limit: 10,
            vector: vector.map(|values| QueryVector { model: MODEL, values }),
            ..SearchQuery::default()
        };
        let begin = Instant::now();
        index.search(&query).unwrap();
        begin.elapsed()
    };
    questions.iter().take(20).for_each(|question| {
        search(question);
    });
    questions.iter().map(search).collect()
}

fn sorted(times: &[Duration]) -> Vec<Duration> {
    let mut times = times.to_vec();
    times.sort();
    times
}

fn median(times: &[Duration]) -> Duration {
    sorted(times)[times.len() / 2]
}

fn spread(times: &[Duration]) -> String {
    let times = sorted(times);
    let at = |share: usize| ms(times[(times.len() - 1) * share / 100]);
    format!("{:.2} / {:.2} / {:.2} / {:.2} ms", at(0), at(50), at(95), at(100))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
