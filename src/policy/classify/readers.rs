//! Programs that only read, and a few that make something new and harmless, with the options that keep them so.
//!
//! From the manuals of GNU coreutils, findutils, grep, procps and util-linux, held against the BSD ones for letters that mean something
//! else there. Left out on purpose: whatever names an output file, runs a program, sets something, or reads the list of its files
//! from a file.

use super::{
    Rated, Risk,
    options::{Operands, Options},
};

/// A program, or several with the same options.
struct Known {
    names: &'static [&'static str],
    risk: Risk,
    options: Options,
}

const fn reads(
    names: &'static [&'static str],
    flags: &'static str,
    valued: &'static str,
    longs: &'static str,
    operands: Operands,
) -> Known {
    Known { names, risk: Risk::Safe, options: Options { flags, valued, longs, operands } }
}

const fn makes(
    names: &'static [&'static str],
    flags: &'static str,
    valued: &'static str,
    longs: &'static str,
    operands: Operands,
) -> Known {
    Known { names, risk: Risk::Caution, options: Options { flags, valued, longs, operands } }
}

use Operands::{Any, AtMost, Beginning, Names, OneOf};

const NONE: Operands = AtMost(0);

#[rustfmt::skip]
const KNOWN: &[Known] = &[
    // Files and folders.
    reads(&["ls", "dir", "vdir"], "1aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ", "ITw", "all almost-all author escape block-size= ignore-backups color directory classify file-type format= full-time group-directories-first no-group human-readable si dereference hide= hyperlink indicator-style= inode ignore= kibibytes numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style= reverse recursive size sort= time= time-style= tabsize= width= context zero", Any),
    reads(&["stat"], "LtfxrsnFlq", "c", "dereference file-system format= printf= terse cached=", Any),
    reads(&["file"], "bhikLNprv0", "F", "brief mime mime-type mime-encoding dereference no-dereference no-pad print0 separator=", Any),
    reads(&["du"], "abcdhHklmLPsSx0", "dtB", "all apparent-size block-size= bytes total dereference max-depth= human-readable inodes count-links no-dereference separate-dirs si summarize threshold= time exclude= one-file-system null", Any),
    reads(&["df"], "ahHiklmPT", "txB", "all block-size= human-readable si inodes local portability type= print-type exclude-type= total output", Any),
    reads(&["tree"], "adfilpsughDFrtUvcCnASNqxJX", "LPI", "dirsfirst noreport prune du si gitignore matchdirs ignore-case inodes filelimit= charset= sort= timefmt= metafirst", Any),
    reads(&["basename"], "az", "s", "multiple suffix= zero", Any),
    reads(&["dirname"], "z", "", "zero", Any),
    reads(&["realpath"], "eLmPqsz", "", "canonicalize-existing canonicalize-missing logical physical quiet relative-to= relative-base= strip no-symlinks zero", Any),
    reads(&["readlink"], "feLmnqsvz", "", "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero", Any),
    reads(&["pwd"], "LP", "", "logical physical", NONE),
    reads(&["fd", "fdfind"], "HIuLapsgiF0", "dtEeS", "hidden no-ignore no-ignore-vcs unrestricted follow absolute-path full-path case-sensitive ignore-case glob fixed-strings max-depth= min-depth= exact-depth= type= exclude= extension= size= changed-within= changed-before= color= max-results= print0 and=", Any),
    makes(&["mkdir"], "pv", "m", "parents verbose mode=", Any),
    makes(&["touch"], "acm", "dt", "no-create date= time=", Any),
    // Text.
    reads(&["cat"], "AbeEnstTuv", "", "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting", Any),
    reads(&["tac"], "br", "s", "before regex separator=", Any),
    reads(&["rev"], "", "", "", Any),
    reads(&["head"], "qvz0123456789", "nc", "bytes= lines= quiet silent verbose zero-terminated", Any),
    reads(&["tail"], "fFqvzr0123456789", "nc", "bytes= lines= quiet silent verbose zero-terminated follow", Any),
    reads(&["wc"], "clLmw", "", "bytes chars lines max-line-length words total=", Any),
    reads(&["nl"], "p", "bdfhilnsvw", "body-numbering= section-delimiter= footer-numbering= header-numbering= line-increment= join-blank-lines= number-format= no-renumber number-separator= starting-line-number= number-width=", Any),
    reads(&["grep", "egrep", "fgrep"], "EFGPivwxcLlqsonHhbTUaIrRyz0123456789", "efmABC", "extended-regexp fixed-strings basic-regexp perl-regexp regexp= file= ignore-case no-ignore-case invert-match word-regexp line-regexp count color colour files-without-match files-with-matches max-count= only-matching quiet silent no-messages byte-offset with-filename no-filename label= line-number initial-tab null after-context= before-context= context= text binary-files= exclude= exclude-from= exclude-dir= include= recursive dereference-recursive line-buffered null-data group-separator= no-group-separator", Any),
    reads(&["rg"], "aFiSsvwxclnNoHhIbLPpquU0.", "eftTgABCmMjrdE", "regexp= fixed-strings ignore-case smart-case case-sensitive invert-match word-regexp line-regexp count count-matches files files-with-matches files-without-match line-number no-line-number only-matching with-filename no-filename heading no-heading follow pcre2 pretty quiet unrestricted multiline multiline-dotall hidden no-ignore no-ignore-vcs glob= iglob= type= type-not= type-list after-context= before-context= context= max-count= max-columns= max-depth= max-filesize= replace= sort= sortr= color= colors= json stats trim null vimgrep column no-messages no-config encoding= threads= text passthru", Any),
    reads(&["sort"], "bdfghiMnRrVcCmsuz", "kt", "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort ignore-nonprinting month-sort numeric-sort random-sort reverse version-sort sort= check merge key= stable field-separator= unique zero-terminated parallel=", Any),
    reads(&["uniq"], "cdDiuz", "fsw", "count repeated all-repeated skip-fields= group ignore-case skip-chars= unique zero-terminated check-chars=", AtMost(1)),
    reads(&["cut"], "nsz", "bcdf", "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated", Any),
    reads(&["tr"], "cCdst", "", "complement delete squeeze-repeats truncate-set1", Any),
    reads(&["paste"], "sz", "d", "delimiters= serial zero-terminated", Any),
    reads(&["join"], "iz", "aetov12j", "ignore-case header check-order nocheck-order zero-terminated", Any),
    reads(&["comm"], "123z", "", "check-order nocheck-order output-delimiter= total zero-terminated", Any),
    reads(&["column"], "tnxeJ", "scolNR", "table separator= output-separator= table-columns= table-right= json output-width= fillrows keep-empty-lines", Any),
    reads(&["fold"], "bs", "w", "bytes spaces width=", Any),
    reads(&["fmt"], "cstu", "w", "crown-margin split-only tagged-paragraph uniform-spacing width=", Any),
    reads(&["expand", "unexpand"], "ai", "t", "initial tabs= all first-only", Any),
    reads(&["shuf"], "ezr", "in", "echo input-range= head-count= repeat zero-terminated", Any),
    reads(&["seq"], "w", "fs", "format= separator= equal-width", Any),
    reads(&["factor", "tsort"], "", "", "", Any),
    reads(&["numfmt"], "z", "d", "from= to= from-unit= to-unit= field= format= header grouping padding= round= suffix= delimiter= invalid=", Any),
    reads(&["diff"], "abBcdeEiNnpPqrstTuvwyZ0123456789", "CUILWxXF", "normal brief report-identical-files context unified= ed rcs side-by-side width= left-column suppress-common-lines show-c-function show-function-line= label= expand-tabs initial-tab recursive no-dereference new-file ignore-file-name-case exclude= ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= text strip-trailing-cr minimal color speed-large-files", Any),
    reads(&["cmp"], "bls", "in", "print-bytes ignore-initial= verbose bytes= quiet silent", Any),
    reads(&["od"], "abcdfilosxv", "AjNStw", "address-radix= skip-bytes= read-bytes= strings= format= output-duplicates width= endian=", Any),
    reads(&["hexdump", "hd"], "bcCdovx", "nse", "canonical length= skip= no-squeezing", Any),
    reads(&["xxd"], "abeEipu", "cglso", "", AtMost(1)),
    reads(&["strings"], "afo", "nte", "all print-file-name bytes= radix= encoding=", Any),
    reads(&["cksum", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "sum", "shasum", "md5"], "bctqrswz", "al", "binary check tag text zero ignore-missing quiet status strict warn algorithm= length=", Any),
    reads(&["base64", "base32"], "dD", "w", "decode ignore-garbage wrap=", AtMost(1)),
    reads(&["jq"], "rcnesSaCMjR", "", "raw-output compact-output null-input exit-status slurp sort-keys ascii-output color-output monochrome-output join-output raw-input tab indent= unbuffered stream seq", Any),
    reads(&["zcat", "bzcat", "xzcat", "zstdcat"], "", "", "", Any),
    reads(&["iconv"], "cls", "ft", "from-code= to-code= list silent", Any),
    // The system.
    reads(&["whoami", "logname", "tty", "nproc", "arch", "users", "sw_vers", "sync"], "", "", "all", NONE),
    reads(&["id", "groups"], "aGgnruz", "", "group groups name real user zero context", Names),
    reads(&["uname"], "asnrvmpio", "", "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system", NONE),
    reads(&["hostname"], "fsIdiA", "", "fqdn long short all-ip-addresses domain ip-address all-fqdns", NONE),
    reads(&["date"], "uR", "d", "date= iso-8601 rfc-email rfc-3339= utc universal reference=", Beginning("+")),
    reads(&["cal", "ncal"], "13hjmyswM", "ABdn", "one three monday sunday year week", Names),
    reads(&["uptime"], "ps", "", "pretty since", NONE),
    reads(&["w", "who", "last"], "hsfabdHlmpqrtTuwi0123456789", "n", "", Names),
    reads(&["free"], "bkmghtlwv", "", "bytes kilo mega giga kibi mebi gibi human total wide lohi si", NONE),
    reads(&["ps"], "AadefFlLjHyTmwxuc", "opCUGgts", "forest no-headers no-heading sort= format= pid= ppid= user= cols= columns= rows=", OneOf(&["a", "x", "u", "ax", "au", "aux", "axu", "auxw", "auxww", "axf", "auxf", "ux", "xa", "auf"])),
    reads(&["pgrep", "pidof"], "afilnovwxcs", "uUgGPt", "list-name list-full full ignore-case newest oldest exact count", Names),
    reads(&["pstree"], "aAcglnpsSuhU", "", "arguments ascii compact-not long numeric-sort show-pids show-parents unicode", Names),
    reads(&["lsblk"], "abfilmnopPrtSJ", "oxI", "all bytes fs list noheadings output= paths pairs raw topology json", Any),
    reads(&["lscpu", "lsusb", "lspci", "lsmod", "vmstat", "iostat"], "aeJtvnnk", "", "", Names),
    reads(&["getconf"], "a", "", "", Names),
    reads(&["locale"], "acm", "", "all-locales charmaps category-name keyword-name", Names),
    reads(&["true", "false", ":"], "", "", "", Any),
    reads(&["sleep"], "", "", "", Names),
    reads(&["cd"], "LP", "", "", AtMost(1)),
    reads(&["which", "whereis", "type", "whatis", "apropos"], "aptPms", "", "all", Names),
    reads(&["man"], "kf", "", "", Names),
    reads(&["ss"], "antulpemiosr46xwH", "", "all numeric tcp udp listening processes extended memory info options summary ipv4 ipv6 unix raw no-header", NONE),
    reads(&["netstat"], "antulpeiorsgW46", "", "all numeric tcp udp listening programs route interfaces statistics wide", NONE),
    reads(&["journalctl"], "bekqrx", "nupSUto", "lines= unit= user-unit= priority= since= until= no-pager boot dmesg reverse catalog quiet output= grep= identifier= list-boots disk-usage utc user system all full no-full", Names),
];

/// The risk of a program that is in the table.
pub(super) fn rate(name: &str, arguments: &[&str]) -> Option<Rated> {
    let known = KNOWN.iter().find(|known| known.names.contains(&name))?;
    if matches!(arguments, ["--help" | "--version"]) {
        return Some(Rated::safe());
    }
    Some(match known.options.read(arguments) {
        Ok(_) if known.risk == Risk::Safe => Rated::safe(),
        Ok(_) => Rated::new(known.risk, format!("`{name}` makes or marks a file, which is easily undone.")),
        Err(word) => Rated::dangerous(format!("`{word}` isn't among what is known to do no harm with `{name}`.")),
    })
}
