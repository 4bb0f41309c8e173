"use strict";
// Asks for the page anew and puts the parts that have changed in their place;
// what stands there without a script stays readable if this one fails.
(() => {
  const period = 2000;
  const patience = 8000;
  let fresh = Date.now();

  const note = () => {
    const place = document.getElementById("fresh");
    const age = Math.round((Date.now() - fresh) / 1000);
    if (age * 1000 < patience) return;
    place.textContent = "no answer for " + age + " s: what you see is old";
    place.className = "old";
  };

  const put = (next) => {
    const main = document.querySelector("main");
    const parts = [...next.querySelector("main").children];
    const old = new Map([...main.children].map((part) => [part.id, part]));
    let place = main.firstElementChild;
    for (const part of parts) {
      const same = old.get(part.id);
      old.delete(part.id);
      if (same && same.outerHTML === part.outerHTML) {
        if (place === same) place = same.nextElementSibling;
        else main.insertBefore(same, place);
        continue;
      }
      const made = document.importNode(part, true);
      if (!same) {
        main.insertBefore(made, place);
      } else {
        if (place === same) place = same.nextElementSibling;
        same.remove();
        main.insertBefore(made, place);
      }
    }
    for (const part of old.values()) part.remove();
    document.title = next.title;
    document.getElementById("fresh").replaceWith(
      document.importNode(next.getElementById("fresh"), true));
  };

  const update = async () => {
    try {
      if (!document.hidden) {
        const answer = await fetch("/", {
          cache: "no-store", signal: AbortSignal.timeout(patience)});
        if (!answer.ok) throw new Error(answer.status);
        const text = await answer.text();
        put(new DOMParser().parseFromString(text, "text/html"));
        fresh = Date.now();
      }
    } catch (error) {
      note();
    }
    setTimeout(update, period);
  };

  // A value of an axis, as the server writes it.
  const say = (unit, value) => {
    if (unit === "share") return (100 * value).toPrecision(3) + " %";
    if (unit === "count") return Math.round(value).toLocaleString("en");
    if (unit !== "seconds") return value.toPrecision(4);
    return value < 1 ? (1000 * value).toPrecision(3) + " ms"
                     : value.toPrecision(3) + " s";
  };

  // Shows the values under the pointer in place of the newest ones.
  document.addEventListener("pointermove", (event) => {
    const svg = event.target.closest && event.target.closest(".chart svg");
    for (const line of document.querySelectorAll(".cursor")) {
      if (!svg || line.parentNode !== svg) line.remove();
    }
    if (!svg) return;
    const [left, right, top, bottom] = svg.dataset.box.split(" ").map(Number);
    const [first, last, low, high] = svg.dataset.range.split(" ").map(Number);
    const shown = svg.getBoundingClientRect();
    const at = (event.clientX - shown.left) / shown.width *
      svg.viewBox.baseVal.width;
    let x = at;
    const keys = svg.parentNode.querySelectorAll(".key b");
    svg.querySelectorAll("polyline").forEach((curve, number) => {
      let best = null;
      for (const point of curve.points) {
        if (!best || Math.abs(point.x - at) < Math.abs(best.x - at)) {
          best = point;
        }
      }
      if (!best || !keys[number]) return;
      x = best.x;
      const step = first + (x - left) / (right - left) * (last - first);
      const value = low + (bottom - best.y) / (bottom - top) * (high - low);
      keys[number].textContent = say(svg.dataset.unit, value) + " at " +
        Math.round(step);
    });
    let cursor = svg.querySelector(".cursor");
    if (!cursor) {
      cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
      cursor.setAttribute("class", "cursor");
      svg.append(cursor);
    }
    for (const [name, value] of
         [["x1", x], ["x2", x], ["y1", top], ["y2", bottom]]) {
      cursor.setAttribute(name, value);
    }
  });

  setTimeout(update, period);
  setInterval(note, 1000);
})();
