//! All results of a folder on one page, drawings included: a single file that can be sent to
//! others.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use pitlane_plot::svg::escaped;
use serde_json::Value;

/// A finding of `pitlane doctor`: its check, its verdict, what was found, and how to fix it.
pub type DoctorFinding = [String; 4];

const STYLE: &str = "\
body { font: 14px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em; color-scheme: light dark; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: 2px 12px 2px 0; text-align: right; }
td:first-child, th:first-child, .words td { text-align: left; }
.missed { font-weight: 600; }
code { font-size: 12px; }
svg { max-width: 100%; height: auto; margin: 1em 0; }";

/// Renders the page of a folder that contains `result.json`.
pub fn page(folder: &Path, findings: &[DoctorFinding]) -> io::Result<String> {
    let result: Value = serde_json::from_str(&fs::read_to_string(folder.join("result.json"))?)?;
    let mut out = String::from(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Pitlane: results</title>\n",
    );
    // Writing into a String does not fail.
    let _ = writeln!(
        out,
        "<style>{STYLE}</style>\n<h1>Results</h1>\n<p><code>pitlane-bench {}</code></p>",
        text(&result["command"])
    );
    conditions(&mut out, &result);
    budget(&mut out, &result["budget"]);
    goals(&mut out, &result["goals"]);
    recordings(&mut out, &result["recordings"]);
    doctor(&mut out, findings);
    drawings(&mut out, folder)?;
    out.push_str("</html>\n");
    Ok(out)
}

fn conditions(out: &mut String, result: &Value) {
    out.push_str("<h2>Conditions</h2>\n<table class=\"words\">\n");
    for (name, value) in result["conditions"].as_object().into_iter().flatten() {
        let _ = writeln!(out, "<tr><td>{}</td><td>{}</td></tr>", escaped(name), text(value));
    }
    let noise = &result["noise"];
    let _ = writeln!(
        out,
        "<tr><td>noise</td><td>{:.2} % of the core taken by others, longest {:.0} µs</td></tr>\n</table>",
        100.0 * noise["part"].as_f64().unwrap_or(0.0),
        noise["maxNs"].as_f64().unwrap_or(0.0) / 1e3
    );
}

/// Renders every line of the budget, measured or not.
fn budget(out: &mut String, rows: &Value) {
    let rows = rows.as_array().map_or(&[][..], Vec::as_slice);
    if rows.is_empty() {
        return;
    }
    out.push_str("<h2>Budget for speed</h2>\n<table class=\"words\">\n");
    for row in rows {
        let (class, verdict) = match row["met"].as_bool() {
            Some(true) => ("met", "met"),
            Some(false) => ("missed", "missed"),
            None => ("", "not in this run"),
        };
        let measured = row["measured"].as_array().map_or(&[][..], Vec::as_slice);
        let measured_text = measured.iter().map(|it| {
            let value = it["value"].as_f64().unwrap_or(0.0);
            format!("{}: {value:.2} {}", text(&it["what"]), text(&it["unit"]))
        });
        let measured_text: Vec<String> = measured_text.collect();
        let how = if measured_text.is_empty() { text(&row["by"]) } else { text(&row["under"]) };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{verdict}</td><td>{how}</td></tr>",
            text(&row["what"]),
            text(&row["goal"]),
            measured_text.join("<br>")
        );
    }
    out.push_str("</table>\n");
}

fn goals(out: &mut String, goals: &Value) {
    let goals = goals.as_array().map_or(&[][..], Vec::as_slice);
    if goals.is_empty() {
        return;
    }
    out.push_str("<h2>Goals</h2>\n<ul>\n");
    for goal in goals {
        let class = if goal["met"].as_bool() == Some(true) { "met" } else { "missed" };
        let _ = writeln!(out, "<li class=\"{class}\">{}</li>", text(&goal["text"]));
    }
    out.push_str("</ul>\n");
}

fn recordings(out: &mut String, recordings: &Value) {
    let recordings = recordings.as_array().map_or(&[][..], Vec::as_slice);
    let Some(first) = recordings.first() else { return };
    let quantiles = |of: &Value| of["latency_ns"].as_array().cloned().unwrap_or_default();
    out.push_str("<h2>Latencies, µs</h2>\n<table>\n<tr><th>what</th><th>per s</th><th>reached</th>");
    for quantile in quantiles(first) {
        let _ = write!(out, "<th>{}</th>", text(&quantile[0]));
    }
    out.push_str("<th>of</th></tr>\n");
    for recording in recordings {
        let number = |key: &str| recording[key].as_f64().unwrap_or(0.0);
        let (planned, reached) = (number("per_s_planned"), number("per_s_reached"));
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{planned:.0}</td><td>{reached:.0}</td>",
            text(&recording["name"])
        );
        for quantile in quantiles(recording) {
            let _ = write!(out, "<td>{:.1}</td>", quantile[1].as_f64().unwrap_or(0.0) / 1e3);
        }
        let _ = writeln!(out, "<td>{}</td></tr>", recording["count"]);
    }
    out.push_str("</table>\n");
}

fn doctor(out: &mut String, findings: &[DoctorFinding]) {
    if findings.is_empty() {
        return;
    }
    out.push_str("<h2>Findings of pitlane doctor</h2>\n<table class=\"words\">\n");
    for finding in findings {
        let cells: Vec<String> = finding.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        let _ = writeln!(out, "<tr>{}</tr>", cells.concat());
    }
    out.push_str("</table>\n");
}

/// Embeds all SVG files, by name.
fn drawings(out: &mut String, folder: &Path) -> io::Result<()> {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "svg"));
    paths.sort();
    for path in paths {
        let svg = fs::read_to_string(&path)?;
        // Each is an image of its own, so that the style of one does not apply to the others.
        let _ = writeln!(
            out,
            "<img alt=\"{}\" src=\"data:image/svg+xml,{}\">",
            escaped(&path.display().to_string()),
            percent(&svg)
        );
    }
    Ok(())
}

fn text(value: &Value) -> String {
    escaped(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Escapes text for a data URL between double quotes.
fn percent(svg: &str) -> String {
    svg.replace('%', "%25")
        .replace('#', "%23")
        .replace('"', "%22")
        .replace('<', "%3C")
        .replace('>', "%3E")
        .replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_of_a_folder_is_on_the_page() {
        let folder = std::env::temp_dir().join(format!("pitlane-page-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let result = r#"{"command": "fix", "conditions": {"machine": "a <b>"}, "noise": {"part": 0.01, "maxNs": 5000},
            "recordings": [{"name": "fix-1", "count": 7, "per_s_planned": 10.0, "per_s_reached": 9.0, "latency_ns": [["p50", 1500]]}],
            "goals": [{"met": false, "text": "MISSED it"}],
            "budget": [{"what": "lanes", "goal": "fast", "by": "bench lane", "under": "calm", "met": true,
                "measured": [{"what": "hop", "value": 1.5, "unit": "ns"}]}, {"what": "rings", "goal": "faster", "by": "bench ring", "met": null}]}"#;
        fs::write(folder.join("result.json"), result).unwrap();
        fs::write(folder.join("a.svg"), "<svg/>").unwrap();
        let page = page(&folder, &[["cores", "unfit", "none", "isolcpus"].map(String::from)]).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        for part in [
            "a &lt;b&gt;",
            "fix-1",
            "<td>1.5</td>",
            "MISSED it",
            "isolcpus",
            "%3Csvg/%3E",
            "hop: 1.50 ns",
            "bench ring",
            "1.00 % of the core",
        ] {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
    }
}
