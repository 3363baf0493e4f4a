//! `open`: a page or a document on the person's screen. The address leaves the machine, and a page that is opened can act on its
//! own: its reach is "leaves".

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Done, Effect, Outcome, Refusal, Tool, Touched, World, brief, files};
use crate::{
    hands::{
        Hands,
        beneath::Access,
        opener::{self, is_address},
    },
    policy::{Reach, Risk},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Open {
    /// An address that begins with https:// or http://, or a document (PDF, picture, text, sound, film, office) in a folder that
    /// you may read.
    target: String,
}

pub(super) fn tool() -> Tool {
    Tool::acting(
        "open",
        "Open a web page or a document on your person's screen, with the program that they have for it.",
        Effect::Once,
        |args: Open, world, hands| Box::pin(open(args, world, hands)),
    )
    .risking(Risk::Caution)
    .reaching(Reach::Leaves)
    .touching(|args: &Open| {
        if is_address(&args.target) {
            Touched::Url(args.target.clone())
        } else {
            Touched::Path { path: args.target.clone().into(), is_write: false }
        }
    })
}

async fn open(args: Open, world: &World, hands: &Hands) -> Outcome {
    let target = if is_address(&args.target) {
        opener::web_address(&args.target).map_err(|why| Refusal(format!("{why} Nothing was opened.")))?
    } else {
        document(&args.target, world, hands)?
    };
    opener::open(&target)
        .await
        .map_err(|error| Refusal(format!("{error} Say so, and give them the address or the path.")))?;
    Ok(Done {
        content: format!("Opened {target} on their screen. Whether they see it isn't known."),
        receipt: Some(format!("Opened {}", brief(&target))),
        ..Done::default()
    })
}

/// A document's path, once it was opened beneath a granted folder and found to be a plain file that nothing runs.
fn document(target: &str, world: &World, hands: &Hands) -> Result<String, Refusal> {
    let place = files::roots(world, hands)?.find(target, Access::Read)?;
    if !opener::is_document(place.path()) {
        return Err(Refusal::because(
            "Only documents are opened: PDF, pictures, text, sound, films, office files. Others may start as programs. \
             Nothing was opened.",
        ));
    }
    let (_, stamp) = place.open()?;
    if stamp.is_executable() {
        return Err(Refusal::because("The file may be run as a program, so it isn't opened. Nothing was opened."));
    }
    place.path().to_str().map(str::to_owned).ok_or_else(|| Refusal::because("Its path isn't text. Nothing was opened."))
}
