// Scripts that run inside a page. They are strings, because a test has no document.

/** The problems that axe calls serious or critical. */
export const FAULTS = `axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => id + ": " + nodes[0].html.slice(0, 200)))`

/** The same for colours only, after everything else was checked in other colours. */
export const COLOUR_FAULTS = FAULTS.replace("axe.run({", 'axe.run({ runOnly: ["color-contrast"],')

/** Wrong headings: not exactly one of the first level, or a level that is skipped. */
export const HEADINGS = `(() => {
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map(({ localName }) => Number(localName[1]))
  const skipped = levels.filter((level, i) => level > (levels[i - 1] ?? level) + 1)
  const first = levels.filter((level) => level === 1).length
  return [...(first === 1 ? [] : [first + " headings of the first level"]), ...skipped.map((level) => "h" + level + " without the level above")]
})()`

/** What Tab reaches in another order than that of the page, or what can be pressed but has no name. */
export const TAB_ORDER = `(() => {
  const pressed = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
  const nameOf = (one) => one.getAttribute("aria-label") || one.labels?.[0]?.textContent || one.textContent || one.placeholder || ""
  return [
    ...[...document.querySelectorAll("[tabindex]")].filter(({ tabIndex }) => tabIndex > 0).map((one) => "order: " + one.outerHTML.slice(0, 100)),
    ...pressed.filter((one) => one.checkVisibility() && nameOf(one).trim() === "").map((one) => "no name: " + one.outerHTML.slice(0, 100)),
  ]
})()`

/** How far the page extends beyond the side of the screen, and the first element that does. */
export const BEYOND = `(() => {
  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth <= clientWidth) return ""
  const wide = [...document.querySelectorAll("main *")].find((one) => one.getBoundingClientRect().right > clientWidth + 1)
  return scrollWidth - clientWidth + " px: " + wide?.outerHTML.slice(0, 200)
})()`

/** Opens everything, and returns what hostile text may have done to the page. */
export const DONE_TO_PAGE = `(() => {
  for (const folded of document.querySelectorAll("details")) folded.open = true
  const count = (what) => document.querySelectorAll(what).length
  const acts = (one) => [...one.attributes].some(({ name }) => /^on|^style$/.test(name))
  // A link in an SVG does not have a protocol property.
  const protocolOf = (link) => link.protocol ?? new URL(link.href.baseVal, document.baseURI).protocol
  return {
    pwned: globalThis.PWNED,
    scripts: count("script"),
    foreign: count("iframe, object, embed, main img, main style, main link, main meta, main base"),
    handlers: [...document.querySelectorAll("*")].filter(acts).length,
    links: [...document.querySelectorAll("a")].filter((link) => !/^https?:$/.test(protocolOf(link))).length,
  }
})()`

/**
 * The words of a drawing: as they are written in each of its texts, as the places of their letters show them, and the lines that
 * a person reads. A gap of more than half a letter is a space.
 */
export const DRAWN = `(() => {
  const lettersOf = (text) => {
    const all = text.getNumberOfChars()
    // A browser that collapses spaces has no position for those that it omits.
    const shown = all === text.textContent.length ? text.textContent : text.textContent.replace(/\\s+/g, " ").trim()
    return [...shown].slice(0, all).map((letter, i) => {
      const { x, y, width } = text.getExtentOfChar(i)
      return { letter, x, y: Math.round(y), end: x + width, width }
    }).filter(({ letter }) => letter.trim() !== "")
  }
  const read = (letters) => letters.map(({ letter, x }, i) => {
    const before = letters[i - 1]
    return (before && x - before.end > before.width / 2 ? " " : "") + letter
  }).join("")
  const texts = [...document.querySelectorAll("text")].map((text) => ({ written: text.textContent, letters: lettersOf(text) }))
  const lines = Object.values(Object.groupBy(texts.flatMap(({ letters }) => letters), ({ y }) => y))
  return {
    written: texts.map(({ written }) => written.trim().replace(/\\s+/g, " ")),
    drawn: texts.map(({ letters }) => read(letters)),
    lines: lines.map((line) => read(line.toSorted((a, b) => a.x - b.x))),
  }
})()`
