//! Functions that run in a page, in a world of our own: the page's scripts can't change what they call.

/// Prepares an element for a click and returns its point, or the problem. `this` is the element. The argument is `act`
/// (visible, enabled, not covered), `reach` (visible, not covered), or `see` (visible alone).
pub(crate) const PREPARE: &str = r#"async function (mode) {
  const el = this.nodeType === 1 ? this : this.parentElement;
  if (!el || !el.isConnected) return {problem: 'gone'};
  if (mode === 'act' && (el.matches(':disabled') || el.closest('[aria-disabled="true"], [inert]'))) return {problem: 'disabled'};
  const frame = () => Promise.race([new Promise(r => requestAnimationFrame(r)), new Promise(r => setTimeout(r, 60))]);
  const usable = e => {
    if (e.checkVisibility && !e.checkVisibility({visibilityProperty: true})) return null;
    return [...e.getClientRects()].find(r => r.width >= 1 && r.height >= 1) || null;
  };
  const inView = r => r.left < innerWidth && r.top < innerHeight && r.right > 0 && r.bottom > 0;
  const candidates = [el, ...(el.labels || [])];
  const covers = (hit, e) => {
    if (!hit) return true;
    if (hit === e || e.contains(hit)) return false;
    const label = hit.closest && hit.closest('label');
    return !(label && label.control === el);
  };
  const hitIn = (e, x, y) => {
    let node = e;
    for (;;) {
      const root = node.getRootNode();
      const hit = root.elementFromPoint ? root.elementFromPoint(x, y) : null;
      if (covers(hit, node)) return {by: hit || document.elementFromPoint(x, y)};
      if (!root.host) return null;
      node = root.host;
    }
  };
  let covered = null, seen = false;
  const scrolled = new Set(), again = [...candidates];
  while (again.length) {
    const e = again.shift();
    // A picture may still be loading.
    for (let i = 0; i < 20 && !usable(e); i++) await frame();
    if (!usable(e)) continue;
    const fits = r => r.left >= 0 && r.top >= 0 && r.right <= innerWidth && r.bottom <= innerHeight;
    if (scrolled.has(e) || !fits(usable(e))) e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
    let last = null;
    for (let i = 0; i < 10; i++) {
      const r = usable(e);
      if (r && last && Math.abs(r.left - last.left) < 1 && Math.abs(r.top - last.top) < 1) break;
      last = r;
      await frame();
    }
    const r = usable(e);
    if (!r || !inView(r)) continue;
    seen = true;
    const left = Math.max(r.left, 0), top = Math.max(r.top, 0);
    const right = Math.min(r.right, innerWidth), bottom = Math.min(r.bottom, innerHeight);
    const point = (fx, fy) => ({x: left + (right - left) * fx, y: top + (bottom - top) * fy,
      left, top, width: right - left, height: bottom - top});
    if (mode === 'see') return point(0.5, 0.5);
    const spots = [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.2], [0.5, 0.8]];
    let first = null;
    for (const [fx, fy] of spots) {
      const p = point(fx, fy), found = hitIn(e, p.x, p.y);
      if (!found) return p;
      first = first || found.by;
    }
    covered = covered || first;
    // A part that scrolls may hide it, although it lies inside the window.
    if (!scrolled.has(e)) { scrolled.add(e); again.push(e); }
  }
  if (!seen) return {problem: 'hidden'};
  const name = covered ? covered.tagName.toLowerCase() + (covered.id ? '#' + covered.id : '') : 'something';
  const said = covered ? (covered.innerText || covered.getAttribute('aria-label') || '').trim().slice(0, 60) : '';
  return {problem: 'covered', by: name, said};
}"#;

/// Moves a point from a frame into its owner's document. `this` is the frame's element.
pub(crate) const THROUGH_FRAME: &str = r#"function (x, y, mode) {
  const r = this.getBoundingClientRect(), s = getComputedStyle(this);
  const px = r.left + this.clientLeft + parseFloat(s.paddingLeft || 0) + x;
  const py = r.top + this.clientTop + parseFloat(s.paddingTop || 0) + y;
  const hit = mode !== 'see' ? this.getRootNode().elementFromPoint(px, py) : this;
  if (hit !== this) return {problem: 'covered', by: hit ? hit.tagName.toLowerCase() : 'the edge of its frame', said: ''};
  return {x: px, y: py};
}"#;

/// Resolves when the document has been quiet for a moment; at the latest after a second.
pub(crate) const QUIET: &str = r#"function () {
  return new Promise(done => {
    let timer = 0;
    const end = () => { watcher.disconnect(); clearTimeout(timer); clearTimeout(last); done(document.readyState); };
    const again = () => { clearTimeout(timer); timer = setTimeout(end, 120); };
    const watcher = new MutationObserver(again);
    watcher.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
    const last = setTimeout(end, 1000);
    again();
  });
}"#;

/// Resolves at the next change of the document; at the latest after the given milliseconds.
pub(crate) const NEXT_CHANGE: &str = r#"function (most) {
  return new Promise(done => {
    const end = () => { watcher.disconnect(); clearTimeout(last); done(true); };
    const watcher = new MutationObserver(end);
    watcher.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
    const last = setTimeout(end, most);
  });
}"#;

/// Focuses a field and says what kind it is. `this` is the field; the argument is `replace` or `append`.
pub(crate) const FOCUS_FIELD: &str = r#"function (mode) {
  const el = this;
  if (el.matches(':disabled') || el.closest('[aria-disabled="true"], [inert]')) return {problem: 'disabled'};
  if (el.readOnly) return {problem: 'read-only'};
  const tag = el.tagName, type = (el.getAttribute('type') || 'text').toLowerCase();
  if (tag === 'SELECT') return {problem: 'select'};
  el.focus({preventScroll: true});
  const whole = ['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range'];
  if (tag === 'INPUT' && whole.includes(type)) return {kind: 'whole'};
  if (tag === 'INPUT' && ['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'file', 'hidden'].includes(type))
    return {problem: 'no-text'};
  if (tag === 'INPUT' || tag === 'TEXTAREA') {
    if (mode === 'replace') el.select();
    else { try { el.setSelectionRange(el.value.length, el.value.length); } catch {} }
    return {kind: 'text', isEmpty: el.value === ''};
  }
  const editor = el.isContentEditable ? el : el.querySelector('[contenteditable], input, textarea');
  if (!editor) return {problem: 'no-text'};
  editor.focus({preventScroll: true});
  if (editor.select) { if (mode === 'replace') editor.select(); return {kind: 'text', isEmpty: editor.value === ''}; }
  const selection = getSelection();
  selection.selectAllChildren(editor);
  if (mode === 'append') selection.collapseToEnd();
  return {kind: 'text', isEmpty: editor.textContent === ''};
}"#;

/// Sets the value of a field that isn't typed into, such as a date. `this` is the field.
pub(crate) const SET_WHOLE: &str = r#"function (text) {
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(this, text);
  this.dispatchEvent(new Event('input', {bubbles: true}));
  this.dispatchEvent(new Event('change', {bubbles: true}));
  return this.value;
}"#;

/// Reads a field back. `this` is the field.
pub(crate) const READ_FIELD: &str = r#"function () {
  const el = this.isContentEditable || 'value' in this ? this : this.querySelector('[contenteditable], input, textarea');
  return el ? ('value' in el ? el.value : el.innerText) : null;
}"#;

/// Selects options by label or value. `this` is the list.
pub(crate) const SELECT_OPTIONS: &str = r#"function (wanted) {
  if (this.tagName !== 'SELECT') return {problem: 'no-list'};
  if (this.matches(':disabled')) return {problem: 'disabled'};
  const plain = s => s.trim().replace(/\s+/g, ' ').toLowerCase();
  const options = [...this.options], chosen = new Set();
  for (const want of wanted) {
    const found = options.find(o => plain(o.label) === plain(want)) || options.find(o => plain(o.text) === plain(want))
      || options.find(o => o.value === want) || options.filter(o => plain(o.label).includes(plain(want))).find((_, i, all) => all.length === 1);
    if (!found) return {problem: 'no-option', want, labels: options.slice(0, 40).map(o => o.label.trim())};
    if (found.disabled) return {problem: 'disabled-option', want};
    chosen.add(found);
  }
  if (!this.multiple && chosen.size !== 1) return {problem: 'one'};
  this.focus({preventScroll: true});
  for (const o of options) o.selected = chosen.has(o);
  this.dispatchEvent(new Event('input', {bubbles: true}));
  this.dispatchEvent(new Event('change', {bubbles: true}));
  return {selected: [...this.selectedOptions].map(o => o.label.trim())};
}"#;

/// Scrolls the nearest scrollable part. `this` is an element, or the window's global object.
pub(crate) const SCROLL: &str = r#"function (direction) {
  const down = ['up', 'down', 'top', 'bottom'].includes(direction);
  const can = e => {
    const s = getComputedStyle(e);
    return down ? e.scrollHeight > e.clientHeight + 1 && /auto|scroll|overlay/.test(s.overflowY)
      : e.scrollWidth > e.clientWidth + 1 && /auto|scroll|overlay/.test(s.overflowX);
  };
  const page = document.scrollingElement || document.documentElement;
  let part = this && this.nodeType === 1 ? this : null;
  while (part && !can(part)) part = part.parentElement;
  part = part || page;
  const h = part === page ? innerHeight : part.clientHeight, w = part === page ? innerWidth : part.clientWidth;
  const before = [part.scrollLeft, part.scrollTop];
  const by = {up: [0, -0.85 * h], down: [0, 0.85 * h], left: [-0.85 * w, 0], right: [0.85 * w, 0]}[direction];
  if (by) part.scrollBy({left: by[0], top: by[1], behavior: 'instant'});
  else part.scrollTo({top: direction === 'top' ? 0 : part.scrollHeight, behavior: 'instant'});
  return {moved: before[0] !== part.scrollLeft || before[1] !== part.scrollTop,
    at: Math.round(down ? part.scrollTop : part.scrollLeft),
    of: Math.round(down ? part.scrollHeight - h : part.scrollWidth - w)};
}"#;

/// The facts of an element that decide whether to ask. `this` is the element.
pub(crate) const DESCRIBE: &str = r#"function () {
  const el = this.nodeType === 1 ? this : this.parentElement;
  if (!el) return null;
  const control = el.closest('a[href], area[href], button, input, select, textarea, [role=button], [role=link]') || el;
  const link = control.matches('a[href], area[href]') ? control.href : null;
  const type = (control.getAttribute('type') || (control.tagName === 'BUTTON' ? 'submit' : '')).toLowerCase();
  const form = control.form || control.closest('form');
  const submits = !!form && ((control.tagName === 'BUTTON' && type === 'submit') ||
    (control.tagName === 'INPUT' && (type === 'submit' || type === 'image')));
  const label = (control.innerText || control.value || control.getAttribute('aria-label') || control.title || '').trim();
  const secret = e => e.type === 'password' || /password|one-time-code|cc-/.test(e.getAttribute('autocomplete') || '');
  const named = e => (e.labels && e.labels[0] && e.labels[0].innerText) || e.getAttribute('aria-label') || e.placeholder || e.name || e.type || '';
  const shown = e => e.type === 'select-multiple' ? [...e.selectedOptions].map(o => o.label).join(', ')
    : e.tagName === 'SELECT' ? (e.selectedOptions[0] || {label: ''}).label
    : e.type === 'file' ? [...e.files].map(f => f.name).join(', ') : e.value;
  const fields = form ? [...form.elements].filter(e => 'value' in e && !['submit', 'button', 'reset', 'image', 'hidden', 'fieldset', 'output'].includes(e.type)
    && (!['checkbox', 'radio'].includes(e.type) || e.checked)) : [];
  const isField = control.matches('input, textarea, select') || control.isContentEditable;
  return {tag: control.tagName.toLowerCase(), type, label: isField && !submits && type !== 'button' ? named(control).trim() : label.slice(0, 200), link, submits,
    isSecret: isField && secret(control), isField,
    form: form && {action: form.action, method: form.method, hasSecret: fields.some(secret),
      values: fields.slice(0, 60).map(e => ({label: named(e).trim().slice(0, 80), value: secret(e) ? null : String(shown(e)).slice(0, 500)}))}};
}"#;

/// Hides the text of a secret field in pictures (`on`), or shows it again (`off`). `this` is the field.
pub(crate) const MASK: &str = r#"function (how) {
  if (how === 'on') this.style.setProperty('-webkit-text-security', 'disc', 'important');
  else this.style.removeProperty('-webkit-text-security');
}"#;
