//! An SVG drawing: a file of its own, or a part of an HTML page. In a file, the colours follow the
//! reader's theme, so that a plot is legible on white and on black; a page has its own style.

use std::fmt::Write;

/// Colours of curves. Curves can be told apart without colour too: by their order and their labels.
pub const COLOURS: [&str; 8] =
    ["#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f"];

const NOTE_HEIGHT: f64 = 13.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextAnchor {
    Start,
    Middle,
    End,
}

/// A small triangle at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// It points up to the place.
    Up,
    /// It points down to the place.
    Down,
}

/// A drawing under construction.
#[derive(Clone, Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, body: String::new() }
    }

    /// Begins a drawing with a title and notes below it.
    pub fn titled(width: f64, height: f64, title: &str, notes: &[String]) -> Svg {
        let mut svg = Svg::new(width, height);
        svg.text(16.0, 24.0, TextAnchor::Start, "title", title);
        for (nth, note) in notes.iter().enumerate() {
            svg.text(16.0, 40.0 + NOTE_HEIGHT * nth as f64, TextAnchor::Start, "note", note);
        }
        svg
    }

    /// Returns the position below title and notes, where a drawing may begin.
    pub fn top(notes: &[String]) -> f64 {
        56.0 + NOTE_HEIGHT * notes.len() as f64
    }

    pub fn text(&mut self, x: f64, y: f64, anchor: TextAnchor, class: &str, text: &str) {
        let anchor = match anchor {
            TextAnchor::Start => "start",
            TextAnchor::Middle => "middle",
            TextAnchor::End => "end",
        };
        self.put(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" class="{class}">{}</text>"#,
            escaped(text)
        ));
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.put(format_args!(
            r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" class="{class}"/>"#,
            from.0, from.1, to.0, to.1
        ));
    }

    pub fn path(&mut self, points: &[(f64, f64)], colour: &str) {
        let mut steps = String::new();
        for (nth, (x, y)) in points.iter().enumerate() {
            let _ = write!(steps, "{}{x:.1} {y:.1}", if nth == 0 { "M" } else { "L" });
        }
        self.put(format_args!(r#"<path d="{steps}" fill="none" stroke="{colour}" stroke-width="1.6"/>"#));
    }

    pub fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str) {
        let width = width.max(1.0);
        self.put(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="2" fill="{colour}"/>"#
        ));
    }

    pub fn marker(&mut self, (x, y): (f64, f64), marker: Marker, colour: &str) {
        let away = match marker {
            Marker::Up => 7.0,
            Marker::Down => -7.0,
        };
        let (left, right, end) = (x - 4.0, x + 4.0, y + away);
        self.put(format_args!(
            r#"<path d="M{x:.1} {y:.1}L{left:.1} {end:.1}L{right:.1} {end:.1}Z" fill="{colour}"/>"#
        ));
    }

    /// Returns the drawing as an element of an HTML page, which has the styles. `label` is read to
    /// those who do not see the drawing.
    pub fn element(&self, class: &str, label: &str) -> String {
        let Svg { width, height, body } = self;
        let label = escaped(label);
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{body}</svg>"
        )
    }

    /// Returns the drawing as a file, with its styles.
    pub fn finish(self) -> String {
        let Svg { width, height, body } = self;
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<style>
svg {{ background: #fff; color: #16202c; font: 11px system-ui, sans-serif; font-variant-numeric: tabular-nums; }}
text {{ fill: currentColor; }}
.title {{ font-size: 15px; font-weight: 600; }}
.note, .tick {{ fill: #5b6675; }}
.grid {{ stroke: #dde3ea; }}
.axis {{ stroke: #8a94a1; }}
.goal {{ stroke: #16202c; stroke-dasharray: 4 3; }}
@media (prefers-color-scheme: dark) {{
svg {{ background: #11161d; color: #e6ebf2; }}
.note, .tick {{ fill: #98a3b3; }}
.grid {{ stroke: #252d38; }}
.goal {{ stroke: #e6ebf2; }}
}}
</style>
{body}</svg>
"#
        )
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing into a String does not fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// Escapes text for use as text or as an attribute value between quotes, in SVG and in HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_in_a_drawing() {
        let mut svg = Svg::titled(10.0, 10.0, "a < b & c", &[]);
        svg.text(0.0, 0.0, TextAnchor::End, "tick", "<script>");
        for text in [svg.element("plot", "\"<script>"), svg.clone().finish()] {
            assert!(
                text.contains("a &lt; b &amp; c")
                    && text.contains("&lt;script&gt;")
                    && !text.contains("<script>")
            );
        }
    }

    #[test]
    fn an_element_of_a_page_has_its_class_and_no_styles() {
        let mut svg = Svg::new(10.0, 20.0);
        svg.path(&[(0.0, 1.0), (2.0, 3.5)], COLOURS[0]);
        svg.marker((5.0, 6.0), Marker::Up, COLOURS[1]);
        svg.marker((5.0, 6.0), Marker::Down, COLOURS[1]);
        let text = svg.element("equity", "Equity");
        assert!(
            text.starts_with(
                "<svg class=\"equity\" viewBox=\"0 0 10 20\" role=\"img\" aria-label=\"Equity\">"
            )
        );
        assert!(text.contains("d=\"M0.0 1.0L2.0 3.5\"") && !text.contains("<style>"));
        assert!(text.contains("M5.0 6.0L1.0 13.0L9.0 13.0Z") && text.contains("M5.0 6.0L1.0 -1.0L9.0 -1.0Z"));
    }
}
