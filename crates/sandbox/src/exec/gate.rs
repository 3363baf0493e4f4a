//! Read-only probe commands, with which a standing job checks for something to do. The command gets no network, none
//! of our variables, and only an empty writable folder. Without a sandbox nothing runs.

use std::{path::Path, time::Duration};

use reveille_base::random;
use reveille_policy::Access;

use super::{
    Exec, ExecError, MARK_BYTES,
    folders::CycleFolder,
    session::{self, End, Ran, ShellSession},
    shelter::ScratchView,
};
use crate::Confined;

/// The `PATH` of the command.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

impl Exec {
    /// Runs a command in a shell of its own, with a timeout; `home` is the value of `~`. Dropping the future ends all its processes.
    ///
    /// # Errors
    /// There is no sandbox, or no shell can be started in it.
    pub async fn run_in_fresh_shell(
        &self,
        command: &str,
        home: Option<&Path>,
        within: Duration,
    ) -> Result<Ran, ExecError> {
        let no_shell = |why: String| ExecError::NoShell(why);
        let mark = random::generate_bytes::<MARK_BYTES>().map_err(|error| no_shell(error.to_string()))?;
        let dir = self.make_folder(CycleFolder::make_empty)?;
        let room = self.shelter.measure_room();
        let mut confinement =
            self.shelter.confine_command(&self.rules, Access::default(), ScratchView::Clean, dir.clone());
        confinement.max_file_bytes = Some(room.max_file_bytes(&[]));
        let (program, args) = session::shell_command();
        let confined = self.shelter.sandbox().confine(&confinement, program.as_ref(), args);
        let Confined { spec, proxy } = confined.map_err(|error| no_shell(error.to_string()))?;
        let spec = spec.only_inheriting(&[]).env("PATH", PATH);
        let spec = match home {
            Some(home) => spec.env("HOME", home),
            None => spec,
        };
        let spec = session::with_own_settings_folders(spec, self.shelter.sandbox().temporary_dir(&dir));
        let mut session = ShellSession::start(&spec, proxy).map_err(|error| no_shell(error.to_string()))?;
        let ran = session.run(&random::format_hex(&mark), command, within, &room).await;
        drop(session);
        // The command's leftovers are worthless; a failed removal is made up for when the scratch is emptied.
        std::fs::remove_dir_all(&dir).ok();
        if let End::Filled(filled) = ran.end {
            room.free_space(Some(filled));
        }
        Ok(ran)
    }
}
