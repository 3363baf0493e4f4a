//! `open` opens a page, a document or an application on the person's screen. The address leaves the machine, and an opened page can act on
//! its own, so its reach is "leaves". An application runs as the person without a sandbox, so it asks each time.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_policy::{Reach, Risk};
use reveille_sandbox::exec::{
    Exec,
    beneath::PathUse,
    opener::{self, Target, is_address},
};

use super::{Done, Outcome, Refusal, Tool, Touched, World, files, shorten_text};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Open {
    /// An address that begins with https:// or http://, or a document (PDF, picture, text, sound, film, office) in a folder that
    /// you may read.
    #[serde(default)]
    target: Option<String>,
    /// Or an application: on a Mac its name, such as `Calendar`; on Linux the id of its desktop entry, such as `org.gnome.Calendar`.
    #[serde(default)]
    app: Option<String>,
}

pub(super) fn define_tool() -> Tool {
    Tool::new_acting(
        "open",
        "Open a web page or a document on your person's screen, with the program that they have for it, or start an application. Give \
         a target or an app.",
        Effect::Once,
        |args: Open, world, exec| Box::pin(open_target(args, world, exec)),
    )
    .for_owner()
    .with_risk(Risk::Caution)
    .with_reach(Reach::Leaves)
    .with_targets(|args: &Open| match args.target.as_deref() {
        Some(target) if args.app.is_none() && is_address(target) => Touched::Url(target.to_owned()),
        Some(target) if args.app.is_none() => Touched::Path { path: target.into(), is_write: false },
        _ => Touched::App,
    })
}

async fn open_target(args: Open, world: &World, exec: &Exec) -> Outcome {
    let refuse = |why: String| Refusal::new(format!("{why} Nothing was opened."));
    let target = match (args.target.as_deref(), args.app.as_deref()) {
        (Some(address), None) if is_address(address) => Target::Thing(opener::web_address(address).map_err(refuse)?),
        (Some(path), None) => Target::Thing(check_document(path, world, exec)?),
        (None, Some(app)) => Target::App(opener::app_name(app).map_err(refuse)?),
        _ => return Err(refuse("Give a target or an app, one of them.".to_owned())),
    };
    let name = target.name().to_owned();
    opener::open_target(&target)
        .await
        .map_err(|error| Refusal::new(format!("{error} Say so, and give them the address, the path or the name.")))?;
    Ok(Done {
        content: format!("Opened {name} on their screen. Whether they see it isn't known."),
        receipt: Some(format!("Opened {}", shorten_text(&name))),
        ..Done::default()
    })
}

/// Returns a document's path after checking that it lies beneath a granted folder and is a plain file that can't be run.
fn check_document(target: &str, world: &World, exec: &Exec) -> Result<String, Refusal> {
    let place = files::list_roots(world, exec)?.resolve(target, PathUse::Read)?;
    if !opener::is_document(place.path()) {
        return Err(Refusal::new(
            "Only documents are opened: PDF, pictures, text, sound, films, office files. Others may start as programs. \
             Nothing was opened.",
        ));
    }
    let (_, stamp) = place.open()?;
    if stamp.is_executable() {
        return Err(Refusal::new("The file may be run as a program, so it isn't opened. Nothing was opened."));
    }
    place.path().to_str().map(str::to_owned).ok_or_else(|| Refusal::new("Its path isn't text. Nothing was opened."))
}
