//! Figures as one self-contained HTML page: charts as SVG, no script.
//!
//! - `chart`: a chart with its axes and series.

mod chart;

use std::fmt::Write;

use crate::measure::{Load, Percentiles};
use crate::table::{rows, time};

use chart::{Axis, Chart, Series};

const STYLE: &str = include_str!("style.css");

/// A phase to plot.
#[derive(Debug)]
pub struct PlottedPhase<'a> {
    pub name: &'a str,
    pub load: &'a Load,
}

/// The page: latency curves, throughput over time, the table of figures, and the report as text.
pub fn page(title: &str, phases: &[PlottedPhase<'_>], text: &str) -> String {
    let mut body = String::new();
    for (name, charts) in
        [("How long it took", latency(phases)), ("How fast it was", speed(phases))]
    {
        if !charts.is_empty() {
            let charts = charts.concat();
            put(&mut body, format_args!("<h2>{name}</h2>\n<div class=\"charts\">{charts}</div>\n"));
        }
    }
    if !phases.is_empty() {
        put(&mut body, format_args!("<h2>Figures</h2>\n{}", table(phases)));
    }
    put(&mut body, format_args!("<h2>The report</h2>\n<pre>{}</pre>\n", escaped(text.trim())));
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         {body}</body>\n</html>\n"
    )
}

/// One chart per phase, all with the same axes, so that they compare.
fn latency(phases: &[PlottedPhase<'_>]) -> Vec<String> {
    let all: Vec<&Percentiles> =
        phases.iter().flat_map(|phase| rows(phase.load)).map(|(_, _, took)| took).collect();
    let highest = all.iter().map(|took| took.max_us).fold(1.0, f64::max);
    let lowest = all.iter().map(|took| took.p50_us).filter(|us| *us > 0.0).fold(highest, f64::min);
    let chart = |phase: &PlottedPhase<'_>| {
        let series = rows(phase.load).into_iter().map(|(name, _, took)| {
            let points = took.curve.iter().map(|(quantile, us)| (1.0 / (1.0 - quantile), *us));
            Series { name, points: points.collect() }
        });
        Chart {
            title: phase.name,
            x: Axis::percentiles(),
            y: Axis::times(lowest, highest),
            series: series.collect(),
        }
        .draw()
    };
    phases.iter().filter(|phase| !rows(phase.load).is_empty()).map(chart).collect()
}

/// All phases in one chart.
fn speed(phases: &[PlottedPhase<'_>]) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "a position on an axis")]
    let at = |step: usize| (step as f64 + 0.5) * Load::STEP_MS as f64 / 1000.0;
    let series: Vec<Series<'_>> = phases
        .iter()
        .filter(|phase| phase.load.over_time.len() > 1)
        .map(|phase| {
            let rates = phase.load.over_time.iter().enumerate();
            Series {
                name: phase.name,
                points: rates.map(|(step, rate)| (at(step), *rate)).collect(),
            }
        })
        .collect();
    if series.is_empty() {
        return Vec::new();
    }
    let points = || series.iter().flat_map(|line| &line.points);
    let (seconds, rate) = points()
        .fold((0.0_f64, 1.0_f64), |(x, y), (seconds, rate)| (x.max(*seconds), y.max(*rate)));
    let title = "Pushed per second, over seconds";
    vec![Chart { title, x: Axis::even(seconds), y: Axis::even(rate), series }.draw()]
}

fn table(phases: &[PlottedPhase<'_>]) -> String {
    let mut out = String::from(
        "<div class=\"wide\"><table>\n<tr><th></th><th></th><th>per second</th><th>p50</th>\
         <th>p90</th><th>p99</th><th>p99.9</th><th>max</th></tr>\n",
    );
    for phase in phases {
        for (name, rate, it) in rows(phase.load) {
            let rate = rate.map_or(String::new(), |rate| format!("{rate:.0}"));
            put(&mut out, format_args!("<tr><th>{}</th><th>{name}</th>", escaped(phase.name)));
            put(&mut out, format_args!("<td>{rate}</td>"));
            for us in [it.p50_us, it.p90_us, it.p99_us, it.p999_us, it.max_us] {
                put(&mut out, format_args!("<td>{}</td>", time(us)));
            }
            out.push_str("</tr>\n");
        }
    }
    out.push_str("</table></div>\n");
    out
}

/// Writing to a string never fails.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    if out.write_fmt(text).is_err() {
        out.push_str("(not shown)");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> Load {
        let curve = vec![(0.5, 100.0), (0.9, 400.0), (0.99, 9000.0)];
        let took = Percentiles {
            count: 9,
            p50_us: 100.0,
            max_us: 9000.0,
            curve,
            ..Percentiles::default()
        };
        Load { pushed: took, over_time: vec![10.0, 30.0, 20.0], ..Load::default() }
    }

    #[test]
    fn a_page_needs_nothing_else_and_holds_the_figures() {
        let load = load();
        let phases = [
            PlottedPhase { name: "a <b>", load: &load },
            PlottedPhase { name: "bare", load: &load },
        ];
        let page = page("Title & more", &phases, "1 < 2");
        for part in ["<svg", "9.00 ms", "a &lt;b&gt;", "Title &amp; more", "1 &lt; 2", "99.9 %"] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        for elsewhere in ["http://", "https://", "<script", "NaN", "inf"] {
            assert!(!page.contains(elsewhere), "{elsewhere} is in\n{page}");
        }
        assert_eq!(page.matches("<svg").count(), 3, "a curve for each, and the speed of both");
    }

    #[test]
    fn nothing_measured_is_still_a_page() {
        let page = page("Empty", &[], "nothing");
        assert!(page.contains("nothing") && !page.contains("<svg"));
    }
}
