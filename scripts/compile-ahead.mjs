import { parse } from "acorn"

// Node caches V8's compiled code of a file between starts, but only of functions that V8 compiles when it reads the file. V8
// compiles most functions only when they are called, and again at every start. A function in parentheses looks to V8 like one
// that is called immediately, so it is compiled with the file, and cached.

/** Functions that esbuild calls once to run a module. */
const RUNS_MODULES = ["__esm", "__commonJS"]

/**
 * An equivalent bundle whose functions and modules are compiled when it is read. Functions are moved to the beginning, where
 * their declarations would take effect.
 * @param {string} text
 */
export function compiledAhead(text) {
  const functions = []
  const rest = []
  let at = 0
  const replace = (start, end, by) => {
    rest.push(text.slice(at, start), by)
    at = end
  }
  for (const statement of parse(text, { ecmaVersion: "latest", sourceType: "module" }).body) {
    if (statement.type === "FunctionDeclaration") {
      const { start, end, id } = statement
      functions.push(`var ${id.name}=(${text.slice(start, id.start)}${text.slice(id.end, end)});`)
      replace(start, end, "")
    }
    for (const { key, value } of modulesIn(statement))
      replace(key.end, value.end, `:(function${text.slice(value.start, value.end)})`)
  }
  return `${functions.join("")}\n${rest.join("")}${text.slice(at)}`
}

/** The bodies of modules that a statement of a bundle declares: `var init_a = __esm({ "src/a.ts"() {…} })`. */
function modulesIn(statement) {
  const calls = statement.type === "VariableDeclaration" ? statement.declarations.map(({ init }) => init) : []
  return calls
    .filter((call) => call?.type === "CallExpression" && RUNS_MODULES.includes(call.callee.name))
    .map((call) => call.arguments[0].properties[0])
    .filter(({ method }) => method)
}
