//! One source file with many mutants in it: each is compiled in, and a number chooses one at run
//! time.

use crate::list::{Lines, Mutant};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// What a place in the source becomes.
enum Shape {
    /// The beginning of a function's body: an early return is put there.
    Body,
    /// An operator between or before its operands.
    Operator(Range<usize>),
    /// The condition of an arm, of which the value is chosen.
    Guard,
    /// An arm without a condition, which gets one.
    Arm,
    /// A field of a structure with a base, here the text of the base's field.
    Field(String),
}

struct Site {
    range: Range<usize>,
    shape: Shape,
    choices: Vec<(u32, Choice)>,
}

/// A mutant of a place.
enum Choice {
    Replace(String),
    DeleteArm,
}

/// A part of the written file and the mutants that it consists of.
pub struct Mark {
    pub range: Range<usize>,
    pub mutants: Vec<u32>,
}

pub struct Written {
    pub text: String,
    pub marks: Vec<Mark>,
    /// Mutants for which there is no place: in constants, in conditions with `let`.
    pub impossible: Vec<u32>,
}

/// A place where cargo-mutants can name a mutant, by what it changes and where that begins.
type Key = (&'static str, usize);

/// The functions that are `const`: the range of the whole, the range of the word, the name.
struct ConstFn {
    whole: Range<usize>,
    word: Range<usize>,
    name: String,
}

#[derive(Default)]
struct Places {
    sites: Vec<Site>,
    found: BTreeMap<Key, usize>,
    functions: Vec<Range<usize>>,
    matches: Vec<Range<usize>>,
    consts: Vec<ConstFn>,
    /// Arms with a condition: where the arm begins, where its condition begins.
    guarded: BTreeMap<usize, usize>,
    source: String,
}

fn has_let(condition: &syn::Expr) -> bool {
    match condition {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl Places {
    fn site(&mut self, key: Key, range: Range<usize>, shape: Shape) {
        self.found.insert(key, self.sites.len());
        self.sites.push(Site { range, shape, choices: Vec::new() });
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block, whole: Range<usize>) {
        if let Some(first) = block.stmts.first() {
            let open = block.brace_token.span.open().byte_range().end;
            let start = first.span().byte_range().start;
            self.site(("FnValue", start), open..open, Shape::Body);
        }
        if let Some(word) = &signature.constness {
            let (word, name) = (word.span().byte_range(), signature.ident.to_string());
            self.consts.push(ConstFn { whole: whole.clone(), word, name });
        }
        self.functions.push(whole);
    }
}

impl<'ast> Visit<'ast> for Places {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block, item.span().byte_range());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block, item.span().byte_range());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block, item.span().byte_range());
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if !has_let(&binary.left) && !has_let(&binary.right) {
            let operator = binary.op.span().byte_range();
            let key = ("BinaryOperator", operator.start);
            self.site(key, binary.span().byte_range(), Shape::Operator(operator));
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let operator = unary.op.span().byte_range();
        let key = ("UnaryOperator", operator.start);
        self.site(key, unary.span().byte_range(), Shape::Operator(operator));
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_match(&mut self, expression: &'ast syn::ExprMatch) {
        self.matches.push(expression.span().byte_range());
        visit::visit_expr_match(self, expression);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let start = arm.span().byte_range().start;
        match &arm.pat {
            syn::Pat::Guard(syn::PatGuard { guard, .. }) => {
                let range = guard.span().byte_range();
                self.guarded.insert(start, range.start);
                if !has_let(guard) {
                    self.site(("MatchArmGuard", range.start), range, Shape::Guard);
                }
            }
            _ => {
                let end = arm.pat.span().byte_range().end;
                self.site(("MatchArm", start), end..end, Shape::Arm);
            }
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, structure: &'ast syn::ExprStruct) {
        if let Some(base) = &structure.rest {
            let base = self.source[base.span().byte_range()].to_owned();
            for field in &structure.fields {
                let syn::Member::Named(name) = &field.member else { continue };
                let range = field.span().byte_range();
                let shape = Shape::Field(format!("({base}).{name}"));
                self.site(("StructField", range.start), range, shape);
            }
        }
        visit::visit_expr_struct(self, structure);
    }
}

/// Writes a file with its mutants. Functions in `keep_const` stay `const`, so that mutants in them
/// are impossible.
pub fn rewrite(
    source: &str,
    mutants: &[(u32, &Mutant)],
    keep_const: &BTreeSet<String>,
) -> Result<Written, String> {
    let file = syn::parse_file(source).map_err(|error| error.to_string())?;
    let mut places = Places { source: source.to_owned(), ..Places::default() };
    places.visit_file(&file);
    let lines = Lines::new(source);
    let mut impossible = Vec::new();
    for &(id, mutant) in mutants {
        let start = lines.offset(mutant.span.start);
        let is_kept =
            |function: &ConstFn| function.whole.contains(&start) && keep_const.contains(&function.name);
        let (key, choice) = match (mutant.genre.as_str(), places.guarded.get(&start)) {
            ("MatchArm", Some(&guard)) => (("MatchArmGuard", guard), Choice::DeleteArm),
            ("MatchArm", None) => (("MatchArm", start), Choice::DeleteArm),
            (genre, _) => {
                let known = ["FnValue", "BinaryOperator", "UnaryOperator", "MatchArmGuard"];
                let genre = known.into_iter().find(|known| *known == genre);
                let key = (genre.unwrap_or("StructField"), start);
                (key, Choice::Replace(mutant.replacement.clone()))
            }
        };
        match places.found.get(&key) {
            Some(&site) if !places.consts.iter().any(is_kept) => {
                places.sites[site].choices.push((id, choice));
            }
            _ => impossible.push(id),
        }
    }
    let Places { mut sites, functions, matches, consts, .. } = places;
    sites.retain(|site| !site.choices.is_empty());
    sites.sort_by_key(|site| (site.range.start, usize::MAX - site.range.end));
    let is_stripped = |function: &ConstFn| {
        let whole = &function.whole;
        !keep_const.contains(&function.name) && sites.iter().any(|site| whole.contains(&site.range.start))
    };
    let words = consts.iter().filter(|function| is_stripped(function));
    let words: Vec<Range<usize>> = words.map(|function| function.word.clone()).collect();
    let mut writer = Writer { source, words, text: String::new(), marks: Vec::new(), copied: Vec::new() };
    writer.copy(0..source.len(), &sites);
    // An error without a place of its own is about the early returns of its function, or about the
    // arms of a `match` that has too few of them.
    for range in functions {
        writer.mark_all(&range, &sites, |site, _| matches!(site.shape, Shape::Body));
    }
    for range in matches {
        writer.mark_all(&range, &sites, |_, choice| matches!(choice, Choice::DeleteArm));
    }
    let Writer { text, marks, .. } = writer;
    Ok(Written { text, marks, impossible })
}

struct Writer<'a> {
    source: &'a str,
    /// Words of the source that are left out.
    words: Vec<Range<usize>>,
    text: String,
    marks: Vec<Mark>,
    /// Where each copied part begins: in the source and in the text.
    copied: Vec<(usize, usize)>,
}

impl Writer<'_> {
    /// Where the text has the part of the source at `offset`.
    fn written(&self, offset: usize) -> usize {
        let next = self.copied.partition_point(|(source, _)| *source <= offset);
        let (source, text) = next.checked_sub(1).map_or((0, 0), |last| self.copied[last]);
        text + (offset - source)
    }

    /// Copies a range of the source, with its sites.
    fn copy(&mut self, range: Range<usize>, sites: &[Site]) {
        let (mut at, mut rest) = (range.start, sites);
        while let [site, after @ ..] = rest {
            let is_inside = |inner: &&Site| inner.range.end <= site.range.end;
            let is_empty = site.range.is_empty();
            let inner = if is_empty { 0 } else { after.iter().take_while(is_inside).count() };
            self.plain(at..site.range.start);
            self.site(site, &after[..inner]);
            (at, rest) = (site.range.end, &after[inner..]);
        }
        self.plain(at..range.end);
    }

    fn plain(&mut self, range: Range<usize>) {
        let mut at = range.start;
        for word in self.words.iter().filter(|word| range.contains(&word.start)) {
            self.copied.push((at, self.text.len()));
            self.text.push_str(&self.source[at..word.start]);
            at = word.end;
        }
        self.copied.push((at, self.text.len()));
        self.text.push_str(&self.source[at..range.end]);
    }

    /// Marks a range of the source with the wanted mutants inside.
    fn mark_all(&mut self, range: &Range<usize>, sites: &[Site], is_wanted: impl Fn(&Site, &Choice) -> bool) {
        let inside = sites.iter().filter(|site| range.contains(&site.range.start));
        let choices = inside.flat_map(|site| site.choices.iter().map(move |choice| (site, choice)));
        let wanted = choices.filter(|(site, (_, choice))| is_wanted(site, choice));
        let mutants: Vec<u32> = wanted.map(|(_, (id, _))| *id).collect();
        if !mutants.is_empty() {
            let range = self.written(range.start)..self.written(range.end);
            self.marks.push(Mark { range, mutants });
        }
    }

    fn marked(&mut self, mutants: Vec<u32>, write: impl FnOnce(&mut Self)) {
        let start = self.text.len();
        write(self);
        self.marks.push(Mark { range: start..self.text.len(), mutants });
    }

    fn site(&mut self, site: &Site, inner: &[Site]) {
        let all = site.choices.iter().map(|(id, _)| *id).collect();
        let Range { start, end } = site.range;
        self.marked(all, |writer| match &site.shape {
            Shape::Body => {
                for (id, choice) in &site.choices {
                    let Choice::Replace(value) = choice else { continue };
                    let text = format!(" if crate::__m({id}) {{ return {value}; }}");
                    writer.marked(vec![*id], |writer| writer.text.push_str(&text));
                }
            }
            Shape::Operator(operator) => {
                writer.text.push('(');
                let (before, after) = (start..operator.start, operator.end..end);
                for (id, choice) in &site.choices {
                    let Choice::Replace(replacement) = choice else { continue };
                    let (left, right) = (&writer.source[before.clone()], &writer.source[after.clone()]);
                    let text = format!("if crate::__m({id}) {{({left}{replacement}{right})}} else ");
                    writer.marked(vec![*id], |writer| writer.text.push_str(&text));
                }
                writer.text.push_str("{(");
                writer.copy(start..end, inner);
                writer.text.push_str(")})");
            }
            Shape::Guard => {
                let is_true = |choice: &Choice| matches!(choice, Choice::Replace(value) if value == "true");
                for (id, _) in site.choices.iter().filter(|(_, choice)| is_true(choice)) {
                    let text = format!("crate::__m({id}) || ");
                    writer.marked(vec![*id], |writer| writer.text.push_str(&text));
                }
                for (id, _) in site.choices.iter().filter(|(_, choice)| !is_true(choice)) {
                    let text = format!("!crate::__m({id}) && ");
                    writer.marked(vec![*id], |writer| writer.text.push_str(&text));
                }
                writer.text.push('(');
                writer.copy(start..end, inner);
                writer.text.push(')');
            }
            Shape::Arm => {
                for (id, _) in &site.choices {
                    let text = format!(" if !crate::__m({id})");
                    writer.marked(vec![*id], |writer| writer.text.push_str(&text));
                }
            }
            Shape::Field(base) => {
                let name = base.rsplit('.').next().unwrap_or_default();
                let whole = &writer.source[start..end];
                let value = whole.find(':').map_or(start, |colon| start + colon + 1);
                for (id, _) in &site.choices {
                    let text = format!("{name}: if crate::__m({id}) {{ {base} }} else {{ ");
                    writer.marked(vec![*id], |writer| writer.text.push_str(&text));
                }
                writer.copy(value..end, inner);
                writer.text.push_str(" }");
            }
        });
    }
}

/// What the mutants of a crate call.
pub const SWITCH: &str = r#"
#[doc(hidden)]
#[inline]
pub fn __m(mutant: u32) -> bool {
    let chosen = __mutants::CHOSEN.load(std::sync::atomic::Ordering::Relaxed);
    chosen == mutant || (chosen == u32::MAX && __mutants::begin(mutant))
}
#[doc(hidden)]
mod __mutants {
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    pub static CHOSEN: AtomicU32 = AtomicU32::new(u32::MAX);
    static REACHED: [AtomicBool; 32768] = [const { AtomicBool::new(false) }; 32768];
    static RECORD: OnceLock<Option<String>> = OnceLock::new();
    #[cold]
    #[inline(never)]
    pub fn begin(mutant: u32) -> bool {
        let Some(path) = RECORD.get_or_init(|| std::env::var("PITLANE_RECORD").ok()) else {
            let chosen = std::env::var("PITLANE_MUTANT").ok().and_then(|text| text.parse().ok());
            CHOSEN.store(chosen.unwrap_or(0), Relaxed);
            return chosen == Some(mutant);
        };
        if !REACHED[mutant as usize].swap(true, Relaxed) {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            file.unwrap().write_all(format!("{mutant}\n").as_bytes()).unwrap();
        }
        false
    }
}
"#;
