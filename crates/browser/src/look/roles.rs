//! The words for roles and states.

use super::tree::AxNode;

/// Roles that are acted on, with the word for them.
pub(super) fn find_control_word(role: &str) -> Option<&'static str> {
    Some(match role {
        "button" | "PopUpButton" | "ToggleButton" => "button",
        "DisclosureTriangle" | "DisclosureTriangleGrouped" => "button",
        "link" | "DocBackLink" => "link",
        "textbox" | "TextField" | "TextFieldWithComboBox" => "textbox",
        "searchbox" => "searchbox",
        "combobox" | "ComboBoxSelect" | "ComboBoxMenuButton" | "ComboBoxGrouping" => "combobox",
        "listbox" => "listbox",
        "option" | "MenuListOption" => "option",
        "checkbox" => "checkbox",
        "radio" | "radiobutton" => "radio",
        "switch" => "switch",
        "slider" => "slider",
        "spinbutton" => "spinbutton",
        "menuitem" | "menuitemcheckbox" | "menuitemradio" => "menuitem",
        "tab" => "tab",
        "treeitem" => "treeitem",
        "Date" | "DateTime" | "InputTime" => "date field",
        "ColorWell" => "color field",
        _ => return None,
    })
}

/// Roles of parts that are shown as such.
pub(super) fn find_part_word(role: &str) -> Option<PartWord> {
    let always = |word| Some(PartWord { word, without_name: true });
    let named = |word| Some(PartWord { word, without_name: false });
    match role {
        "navigation" => always("navigation"),
        "search" => always("search"),
        "form" => always("form"),
        "dialog" => always("dialog"),
        "alertdialog" => always("dialog"),
        "alert" => always("alert"),
        "menu" => always("menu"),
        "tabpanel" => named("tabpanel"),
        "table" | "grid" | "treegrid" => named("table"),
        "tree" => named("tree"),
        "radiogroup" => named("choice"),
        "group" | "Details" => named("group"),
        "region" => named("region"),
        "figure" => named("figure"),
        "toolbar" => named("toolbar"),
        "contentinfo" => always("footer"),
        _ => None,
    }
}

/// The word for a part of a page.
pub(super) struct PartWord {
    pub(super) word: &'static str,
    /// True if it is shown without a name, too.
    pub(super) without_name: bool,
}

/// Tags that don't begin a line.
const INLINE: [&str; 28] = [
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "mark", "q",
    "s", "samp", "small", "span", "strong", "sub", "sup", "time", "u", "var", "#text",
];

/// Returns true for tags that don't begin a line.
pub(super) fn is_inline_tag(tag: &str) -> bool {
    tag.is_empty() || INLINE.contains(&tag)
}

/// The states of a node, each after a space.
pub(super) fn list_states(node: &AxNode) -> String {
    let mut states = String::new();
    let mut add = |state: &str| {
        states.push(' ');
        states.push_str(state);
    };
    match node.property("checked").as_str() {
        "true" => add("checked"),
        "mixed" => add("partly-checked"),
        "false" => add("unchecked"),
        _ => {}
    }
    match node.property("expanded").as_str() {
        "true" => add("expanded"),
        "false" => add("collapsed"),
        _ => {}
    }
    if !matches!(node.property("hasPopup").as_str(), "" | "false" | "listbox") {
        add("has-menu");
    }
    for state in ["disabled", "selected", "pressed", "required", "readonly", "focused"] {
        if node.is(state) {
            add(state);
        }
    }
    if !matches!(node.property("invalid").as_str(), "" | "false") {
        add("invalid");
    }
    states
}
