//! `view_image`: shows a picture beside a description. Text in a picture is information and never an order.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_media::content::{self, Content, MAX_IMAGE_BYTES, MAX_SIDE_PX};
use reveille_sandbox::exec::{Exec, beneath::PathUse};

use super::{Done, Outcome, Refusal, Tool, Touched, World, files};

/// Maximum number of pictures viewed in one cycle.
const MAX_PICTURES: usize = 8;
/// Maximum bytes of all pictures of one cycle, since each is sent with every further request.
const MAX_PICTURES_BYTES: u64 = 6_000_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ViewImage {
    /// The file. Relative paths are in the scratch folder.
    path: String,
}

pub(super) fn define_tool() -> Tool {
    Tool::new_acting(
        "view_image",
        "Look at a picture (PNG, JPEG, GIF or WebP) in a folder that you may read.",
        Effect::Read,
        |args: ViewImage, world, exec| Box::pin(std::future::ready(view_image(&args, world, exec))),
    )
    .for_owner()
    .with_targets(|args: &ViewImage| Touched::Path { path: args.path.clone().into(), is_write: false })
}

fn view_image(args: &ViewImage, world: &World, exec: &mut Exec) -> Outcome {
    let place = files::list_roots(world, exec)?.resolve(&args.path, PathUse::Read)?;
    let (bytes, _) = place.read(MAX_IMAGE_BYTES)?;
    let Content::Image { mime, size: (width, height) } = content::sniff(&bytes) else {
        return Err(Refusal::new("Its content isn't a picture that can be shown: PNG, JPEG, GIF and WebP can."));
    };
    if width.max(height) > MAX_SIDE_PX {
        return Err(Refusal::new(format!(
            "It is {width}×{height} pixels; a side of {MAX_SIDE_PX} can be shown at most."
        )));
    }
    let (shown, shown_bytes) = exec.pictures;
    let total = shown_bytes + bytes.len() as u64;
    if shown >= MAX_PICTURES || total > MAX_PICTURES_BYTES {
        return Err(Refusal::new(format!(
            "That is one too many: in one wake {MAX_PICTURES} pictures of {MAX_PICTURES_BYTES} bytes together are looked at."
        )));
    }
    exec.pictures = (shown + 1, total);
    let source = serde_json::json!({"type": "base64", "media_type": mime, "data": STANDARD.encode(&bytes)});
    Ok(Done {
        content: format!("{}: {mime}, {width}×{height} pixels, {} bytes.", place.path().display(), bytes.len()),
        taint: files::find_origin(&place, "", world),
        image: Some(serde_json::json!({"type": "image", "source": source}).to_string()),
        ..Done::default()
    })
}
