"use strict";
(() => {
  const templates = [...document.querySelectorAll("template[data-slug]")];
  const slugs = templates.map((template) => template.dataset.slug);
  const overview = document.getElementById("overview");
  const viewer = document.getElementById("viewer");
  const help = document.getElementById("help");
  const live = document.getElementById("live");
  const title = document.title;
  let shown = null; // slug of the counterexample that is mounted
  let step = 0;

  /** The counterexample and step that an address names, or null: the overview. */
  function named(address) {
    let text = address;
    try { text = decodeURIComponent(text); } catch { return null; }
    const [, slug, number] = /^(.*?)(?:\/(\d+))?$/.exec(text);
    const index = slugs.indexOf(slug);
    if (index < 0) return null;
    return { slug, index, step: Number(number ?? templates[index].dataset.from) };
  }

  const steps = () => [...viewer.querySelectorAll("article.step")];

  function route(address) {
    const to = named(address);
    overview.hidden = to !== null;
    viewer.hidden = to === null;
    if (to === null) {
      shown = null;
      viewer.replaceChildren();
      document.title = title;
      return;
    }
    if (shown !== to.slug) {
      viewer.replaceChildren(templates[to.index].content.cloneNode(true));
      shown = to.slug;
      scrollTo(0, 0);
    }
    show(to.step);
  }

  function show(wanted) {
    const all = steps();
    const found = all.find((article) => Number(article.dataset.step) === wanted) ?? all.at(-1);
    if (!found) return;
    step = Number(found.dataset.step);
    for (const article of all) article.hidden = article !== found;
    for (const link of viewer.querySelectorAll(".steps a")) {
      const here = Number(link.dataset.step) === step;
      if (here) { link.setAttribute("aria-current", "step"); link.scrollIntoView({ block: "nearest" }); }
      else link.removeAttribute("aria-current");
    }
    viewer.querySelector('[data-do="previous"]').disabled = found === all[0];
    viewer.querySelector('[data-do="next"]').disabled = found === all.at(-1);
    const heading = found.querySelector("h2");
    heading.focus({ preventScroll: true });
    live.textContent = `Step ${step}: ${heading.textContent}`;
    document.title = `${shown}, step ${step} – ${title}`;
  }

  /** Show an address at once, then set it: a browser tells of the change only after the next key may have come, and
   * puts it off altogether while somebody holds a key down. */
  function go(to) {
    route(to);
    location.hash = to;
  }

  function walk(by) {
    const all = steps();
    const next = all[all.findIndex((article) => !article.hidden) + by];
    if (next) go(`${shown}/${next.dataset.step}`);
  }

  function leap(by) {
    const to = slugs[shown === null ? (by > 0 ? 0 : slugs.length - 1) : slugs.indexOf(shown) + by];
    if (to !== undefined) go(`${to}/${templates[slugs.indexOf(to)].dataset.from}`);
  }

  const deeds = {
    next: () => walk(1),
    previous: () => walk(-1),
    later: () => leap(1),
    earlier: () => leap(-1),
    overview: () => { go(""); scrollTo(0, 0); },
    help: () => (help.open ? help.close() : help.showModal()),
  };
  const keys = { j: "next", k: "previous", n: "later", p: "earlier", o: "overview", "?": "help" };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const deed = keys[event.key];
    if (!deed || (help.open && deed !== "help")) return;
    event.preventDefault();
    deeds[deed]();
  });
  addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (button) deeds[button.dataset.do]();
    if (event.target.closest("[data-skip]")) {
      // Not an address: it would leave the step that is shown.
      event.preventDefault();
      document.getElementById("content").focus();
    }
  });
  const fromAddress = () => route(location.hash.slice(1));
  addEventListener("hashchange", fromAddress);
  fromAddress();
})();
