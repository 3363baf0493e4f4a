use std::os::unix::fs::{PermissionsExt as _, symlink};

use reveille_policy::Rules;

use super::*;

struct Scene {
    dir: tempfile::TempDir,
    shelter: Shelter,
    rules: Rules,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (scratch, work) = (dir.path().join("scratch"), dir.path().join("work"));
        fs::create_dir(&work).unwrap();
        let rules = Rules::parse(&format!("[files]\nwrite = [{:?}]", work.display().to_string())).unwrap();
        // Without a sandbox nothing can be mounted over a file, so every file must be unchanged.
        let shelter = Shelter::missing(&scratch).for_cycle("own", []);
        shelter.folder().make_work().unwrap();
        Self { shelter, rules, dir }
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        if path.extension().is_some_and(|ending| ending == "sh") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        path.canonicalize().unwrap()
    }

    fn find(&self, command: &str) -> FoundFiles {
        find_named_files((command, false), &self.shelter, &self.rules, &|text| !text.contains("SECRET"))
    }

    fn hold(&self, found: &FoundFiles) -> Result<HeldFiles, String> {
        hold_files(&found.named, &self.shelter)
    }

    fn work(&self) -> String {
        self.dir.path().join("work").display().to_string()
    }
}

fn run(found: &FoundFiles) -> Vec<&str> {
    let run = found.named.files.iter().filter(|file| file.is_run);
    run.map(|file| file.path.file_name().unwrap().to_str().unwrap()).collect()
}

#[test]
fn a_file_that_a_command_writes_to_is_none_that_it_runs() {
    let scene = Scene::new();
    scene.write("work/notes", "mine\n");
    let notes = format!("{}/notes", scene.work());
    for command in [format!(": > {notes}"), format!("echo $(date) >> {notes}"), format!("cp \"$HOME/x\" {notes}")] {
        let found = scene.find(&command);
        assert!(run(&found).is_empty() && found.named.files.len() == 1, "{command}: {found:?}");
    }
}

#[test]
fn what_a_command_runs_is_found_in_whatever_words() {
    let scene = Scene::new();
    for path in ["scratch/own/work/x.sh", "scratch/own/work/sub/x.sh", "scratch/own/work/data", "work/x.sh"] {
        scene.write(path, "echo 1\n");
    }
    let of_work = format!("sh {}/x.sh", scene.work());
    let scratch = scene.dir.path().join("scratch/own/work").display().to_string();
    for command in [
        "sh x.sh",
        "bash -u ./x.sh data",
        "./x.sh",
        "timeout 5 ./x.sh",
        "cd sub && sh x.sh",
        "env A=1 sh x.sh",
        "bash -c './x.sh'",
        "source x.sh",
        "$PWD/x.sh",
        "for i in 1 2; do sh x.sh; done",
        &format!("{scratch}/x.sh"),
        &of_work,
    ] {
        let found = scene.find(command);
        assert!(!run(&found).is_empty() && run(&found).iter().all(|name| *name == "x.sh"), "{command}: {found:?}");
    }
    // With access granted a command starts in an empty folder, so only an absolute path reaches a file.
    let given = |command: &str| find_named_files((command, true), &scene.shelter, &scene.rules, &|_| true);
    assert_eq!(given("sh x.sh").named.files, []);
    assert_eq!(run(&given(&format!("sh {scratch}/x.sh"))), ["x.sh"]);
    assert!(given("python3 -c 'import json'").named.is_empty());
    // The bytes of these files count, but they aren't run, so the command may write to them.
    for command in ["cat x.sh", "sed -i s/1/2/ x.sh", "perl -pi -e s/1/2/ x.sh", "python3 -m black x.sh", "sh < x.sh"] {
        let found = scene.find(command);
        assert!(run(&found).is_empty() && found.named.files.len() == 1, "{command}: {found:?}");
    }
    assert_eq!(scene.find("echo one | wc -c"), FoundFiles::default());
    assert!(scene.find("curl https://example.org").named.is_empty());
}

#[test]
fn a_yes_is_void_once_anything_it_may_run_has_changed() {
    let scene = Scene::new();
    let script = scene.write("scratch/own/work/x.sh", "echo 1\n");
    let (tool, data) = (scene.write("work/tool.py", "print(1)\n"), scene.write("scratch/own/work/data", "1\n"));
    let python = format!("python3 {} data", tool.display());
    let change = |path: &Path, text: &str| fs::write(path, text).unwrap();
    let (other, planted) =
        (scene.dir.path().join("scratch/own/work/other.sh"), scene.dir.path().join("scratch/own/work/json.py"));
    change(&other, "echo 2\n");
    type Change<'c> = Box<dyn Fn() + 'c>;
    let changes: Vec<(&str, Change<'_>)> = vec![
        ("sh x.sh", Box::new(|| change(&script, "echo 2\n"))),
        ("sh x.sh", Box::new(|| fs::remove_file(&script).unwrap())),
        (
            "sh x.sh",
            Box::new(|| {
                fs::remove_file(&script).unwrap();
                symlink(&other, &script).unwrap();
            }),
        ),
        ("sh x.sh", Box::new(|| change(&other, "echo 3\n"))),
        (&python, Box::new(|| change(&tool, "print(2)\n"))),
        (&python, Box::new(|| change(&data, "2\n"))),
        (&python, Box::new(|| change(&planted, "print(3)\n"))),
        ("make", Box::new(|| change(&other, "echo 4\n"))),
        ("curl -d @data https://example.org", Box::new(|| change(&data, "3\n"))),
    ];
    for (command, break_it) in &changes {
        fs::remove_file(&script).ok();
        fs::remove_file(&planted).ok();
        scene.write("scratch/own/work/x.sh", "echo 1\n");
        let found = scene.find(command);
        assert!(scene.hold(&found).is_ok(), "{command}");
        break_it();
        let why = scene.hold(&found).unwrap_err();
        assert!(
            why.contains("has changed since your person was asked") && why.contains("Nothing was done"),
            "{command}: {why}"
        );
    }
    // Files a command doesn't load may change, and so may the folder of long outputs.
    let (fetch, run) = (scene.find("curl https://example.org"), scene.find("sh x.sh"));
    scene.write("scratch/own/outputs/0001-bash.txt", "long");
    assert!(scene.hold(&run).is_ok());
    change(&other, "echo 5\n");
    assert!(scene.hold(&fetch).is_ok());
}

#[test]
fn what_is_text_and_no_secret_is_shown_whole_and_all_else_by_its_hash() {
    let scene = Scene::new();
    scene.write("scratch/own/work/x.sh", "echo 1\n");
    scene.write("scratch/own/work/key.sh", "SECRET\n");
    scene.write("scratch/own/work/long.sh", &"echo 1\n".repeat(20_000));
    let program = scene.dir.path().join("scratch/own/work/program");
    fs::write(&program, [0_u8, 159, 146]).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let found = scene.find("sh x.sh; sh key.sh; sh long.sh; ./program");
    let texts: Vec<Option<&str>> = found.named.files.iter().map(|file| file.text.as_deref()).collect();
    assert_eq!(texts, [Some("echo 1\n"), None, None, None]);
    assert!(found.named.files.iter().all(|file| file.sha256.len() == 64 && file.is_run));
    assert!(scene.hold(&found).is_ok());
}

#[test]
fn no_hidden_file_is_looked_at_and_too_many_are_told() {
    let scene = Scene::new();
    let env = scene.write("work/.env", "KEY=1\n");
    let outside = scene.write("outside.sh", "echo 1\n");
    symlink(&outside, scene.dir.path().join("scratch/own/work/link.sh")).unwrap();
    let found = scene.find(&format!("cat {}; sh link.sh; sh {}", env.display(), outside.display()));
    assert!(found.named.files.is_empty(), "{found:?}");
    for n in 0..40 {
        scene.write(&format!("scratch/own/work/f{n}"), "1");
    }
    let all: Vec<String> = (0..40).map(|n| format!("f{n}")).collect();
    let found = scene.find(&format!("cat {}", all.join(" ")));
    assert!(
        found.named.files.len() == 24 && found.unheld.iter().any(|why| why.contains("the first 24 don't change")),
        "{found:?}"
    );
}

#[test]
fn what_was_kept_of_a_question_and_cant_be_read_lets_nothing_run() {
    let scene = Scene::new();
    let named = BoundFiles::parse(Some("nonsense"));
    assert!(hold_files(&named, &scene.shelter).is_err());
    assert!(hold_files(&BoundFiles::parse(None), &scene.shelter).is_ok());
}

#[test]
fn a_file_is_written_as_it_was_and_goes_with_its_command() {
    let scene = Scene::new();
    let script = scene.write("scratch/own/work/x.sh", "echo 1\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let found = scene.find("./x.sh");
    fs::write(&script, "echo 2\n").unwrap();
    let mut held = HeldFiles::default();
    let dir = ensure_folder(&mut held, &scene.shelter).unwrap().to_owned();
    let copy = write_snapshot(&dir.join("0"), &found.named.files[0], open_file(&script).unwrap()).unwrap().unwrap();
    assert_eq!(fs::read_to_string(&copy).unwrap(), "echo 1\n");
    assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o777, 0o500);
    drop(held);
    assert!(!dir.exists());
    // A file that isn't kept as text must still exist.
    let binary = BoundFile { text: None, ..found.named.files[0].clone() };
    let mut held = HeldFiles::default();
    let dir = ensure_folder(&mut held, &scene.shelter).unwrap().to_owned();
    assert!(write_snapshot(&dir.join("0"), &binary, open_file(&script).unwrap()).unwrap().is_none());
}
