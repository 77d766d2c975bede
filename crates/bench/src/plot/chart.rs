//! A line chart as SVG: two axes, the series, and a legend.

use crate::plot::{escaped, put};
use crate::table::time;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 30.0;

/// The range and the marks of an axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    marks: Vec<(f64, String)>,
}

impl Axis {
    /// From the median to 99.999 %, logarithmic. Values are 1 ÷ (1 − quantile).
    pub(super) fn percentiles() -> Self {
        let marks = [
            (2.0, "50 %"),
            (10.0, "90 %"),
            (100.0, "99 %"),
            (1e3, "99.9 %"),
            (1e4, "99.99 %"),
            (1e5, "99.999 %"),
        ];
        let marks = marks.map(|(at, name)| (at, name.to_owned())).to_vec();
        Self { low: 2.0, high: 1e5, is_logarithmic: true, marks }
    }

    /// Microseconds, logarithmic.
    pub(super) fn times(lowest: f64, highest: f64) -> Self {
        let low = 10_f64.powf(lowest.max(1.0).log10().floor());
        let high = 10_f64.powf(highest.log10().ceil()).max(low * 10.0);
        let powers =
            (0..12).map(|power| low * 10_f64.powi(power)).take_while(|at| *at <= high * 1.01);
        let marks = powers.map(|at| (at, time(at).replace(".00", ""))).collect();
        Self { low, high, is_logarithmic: true, marks }
    }

    /// Linear, from zero.
    pub(super) fn even(highest: f64) -> Self {
        let rough = highest / 5.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|it| it * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let high = (highest / step).ceil() * step;
        let marks =
            (0..=10).map(|mark| f64::from(mark) * step).take_while(|at| *at <= high * 1.001);
        Self {
            low: 0.0,
            high,
            is_logarithmic: false,
            marks: marks.map(|at| (at, number(at))).collect(),
        }
    }

    /// The position of a value on the axis, from 0 to 1.
    fn position(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.is_logarithmic { value.log10() } else { value };
        let value = value.clamp(self.low, self.high);
        (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
    }
}

/// A named line.
#[derive(Debug)]
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    pub(super) points: Vec<(f64, f64)>,
}

#[derive(Debug)]
pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series<'a>>,
}

impl Chart<'_> {
    pub(super) fn draw(&self) -> String {
        let title = escaped(self.title);
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n\
             <text class=\"title\" x=\"{LEFT}\" y=\"16\">{title}</text>\n"
        );
        self.draw_grid(&mut out);
        let mut name_at = LEFT;
        for (number, line) in self.series.iter().enumerate() {
            let class = format!("line line-{}", number % 4);
            let points: Vec<String> = line.points.iter().map(|it| self.point(*it)).collect();
            let points = points.join(" ");
            put(&mut out, format_args!("<polyline class=\"{class}\" points=\"{points}\"/>\n"));
            let (end, text_at) = (name_at + 18.0, name_at + 23.0);
            let name = escaped(line.name);
            put(
                &mut out,
                format_args!(
                    "<line class=\"{class}\" x1=\"{name_at}\" x2=\"{end}\" y1=\"34\" y2=\"34\"/>\
                     <text class=\"name\" x=\"{text_at}\" y=\"38\">{name}</text>\n"
                ),
            );
            #[expect(clippy::cast_precision_loss, reason = "the length of a name")]
            let width = line.name.chars().count() as f64 * 6.6;
            name_at = text_at + width + 14.0;
        }
        out.push_str("</svg>\n");
        out
    }

    fn draw_grid(&self, out: &mut String) {
        for (value, name) in &self.y.marks {
            let y = self.y_at(*value);
            let (end, text_x, text_y) = (WIDTH - RIGHT, LEFT - 8.0, y + 4.0);
            put(
                out,
                format_args!(
                    "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                     <text x=\"{text_x}\" y=\"{text_y:.1}\" text-anchor=\"end\">{name}</text>\n"
                ),
            );
        }
        for (value, name) in &self.x.marks {
            let x = self.x_at(*value);
            let (end, text_y) = (HEIGHT - BOTTOM, HEIGHT - BOTTOM + 18.0);
            // The last label would stick out.
            let anchor = if x > WIDTH - RIGHT - 20.0 { "end" } else { "middle" };
            put(
                out,
                format_args!(
                    "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{end}\"/>\
                     <text x=\"{x:.1}\" y=\"{text_y}\" text-anchor=\"{anchor}\">{name}</text>\n"
                ),
            );
        }
    }

    fn point(&self, (x, y): (f64, f64)) -> String {
        format!("{:.1},{:.1}", self.x_at(x), self.y_at(y))
    }

    fn x_at(&self, value: f64) -> f64 {
        LEFT + self.x.position(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y_at(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.position(value) * (HEIGHT - TOP - BOTTOM)
    }
}

/// A number, short.
fn number(value: f64) -> String {
    match value {
        it if it >= 1e6 => format!("{} M", short(it / 1e6)),
        it if it >= 1e4 => format!("{} k", short(it / 1e3)),
        it => short(it),
    }
}

fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_reach_as_far_as_the_figures() {
        let names =
            |axis: &Axis| axis.marks.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&Axis::even(47.0)), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(
            names(&Axis::even(230_000.0)),
            ["0", "50 k", "100 k", "150 k", "200 k", "250 k"]
        );
        assert_eq!(names(&Axis::times(300.0, 41_000.0)), ["100 µs", "1 ms", "10 ms", "0.10 s"]);
    }

    #[test]
    fn places_are_within_the_axis() {
        let axis = Axis::percentiles();
        let near = |value: f64, wanted: f64| (axis.position(value) - wanted).abs() < 1e-9;
        assert!(near(2.0, 0.0) && near(1e5, 1.0) && near(1e9, 1.0));
        assert!((Axis::even(10.0).position(5.0) - 0.5).abs() < 1e-9);
    }
}
