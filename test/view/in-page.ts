// What is asked of a page from inside it, as text: a test has no document.

/** What axe finds serious or worse. */
export const FAULTS = `axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => id + ": " + nodes[0].html.slice(0, 200)))`

/** How far the page goes beyond the screen at its side, and the first element that does. */
export const BEYOND = `(() => {
  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth <= clientWidth) return ""
  const wide = [...document.querySelectorAll("main *")].find((one) => one.getBoundingClientRect().right > clientWidth + 1)
  return scrollWidth - clientWidth + " px: " + wide?.outerHTML.slice(0, 200)
})()`

/** Opens everything, and says what a hostile text may have made of the page. */
export const DONE_TO_PAGE = `(() => {
  for (const folded of document.querySelectorAll("details")) folded.open = true
  const count = (what) => document.querySelectorAll(what).length
  const acts = (one) => [...one.attributes].some(({ name }) => /^on|^style$/.test(name))
  // A link in a drawing does not tell its protocol.
  const protocolOf = (link) => link.protocol ?? new URL(link.href.baseVal, document.baseURI).protocol
  return {
    pwned: globalThis.PWNED,
    scripts: count("script"),
    foreign: count("iframe, object, embed, main img, main style, main link, main meta, main base"),
    handlers: [...document.querySelectorAll("*")].filter(acts).length,
    links: [...document.querySelectorAll("a")].filter((link) => !/^https?:$/.test(protocolOf(link))).length,
  }
})()`
