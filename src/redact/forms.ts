import type { SecretKind } from "./secret-names.ts"

// The forms in which a name and its value are written without a colon or an equals sign. Every repetition is bounded, so the cost
// of a form does not depend on the text.

/** A quote, which may be escaped in a string, and white space, which may be an escape. */
const Q = "\\\\{0,8}[\"'`]"
const B = "(?:\\s|\\\\{1,8}[nrt])"
const QUOTED = `${Q}([^"'\`\\s\\\\<>]{6,256})${Q}`
const BARE = "([^\\s\"'`|<>\\\\,;]{6,256})"
const ELEMENT = "([^<>\\s]{6,256})"
/** Another field between the name and the value. */
const FIELD = `(?:${Q})?[\\w-]{1,30}(?:${Q})?[ \\t]{0,3}[:=][ \\t]{0,3}(?:${Q})?[\\w./-]{0,40}(?:${Q})?${B}{0,40}(?:,${B}{0,40})?`

export type ValueForm = {
  /** Matches the text before the name. */
  before?: RegExp
  /** Matches the last part of the name. */
  name?: RegExp
  /** Matches the text after the name; one of its groups is the value. */
  after: RegExp
  /** True if only a secret can be written in this position. */
  sure?: true
  /** The kind of the value if the name does not determine it. */
  kind?: SecretKind
  /** True if nothing around the value indicates a secret, so that it must contain letters, digits and symbols. */
  strong?: true
}

const form = (after: string, rest: Omit<ValueForm, "after"> = {}): ValueForm => ({
  after: new RegExp(after, "iyd"),
  ...rest,
})

const NAME_FIELD =
  /(?:name|key|variable|parameter|field)\\{0,8}["'`]?[ \t]{0,3}[:=][ \t]{0,3}\\{0,8}["'`]?(?:\/?[\w.-]{1,40}\/){0,6}$/i
const MARKUP_NAME = /(?:name|key|id)=\\{0,8}["']$/i

const NAME_AND_VALUE = form(
  `(?:${Q})?${B}{0,40}(?:,${B}{0,40})?(?:${FIELD}){0,3}?(?:${Q})?(?:Parameter)?value(?:${Q})?[ \\t]{0,3}[:=][ \\t]{0,3}(?:${QUOTED}|${BARE})`,
  { before: NAME_FIELD, sure: true },
)
const CELL = form(`\`?[ \\t]{0,60}\\|[ \\t]{0,60}\`?${BARE}\`?[ \\t]{0,80}(?:\\||\\r?\\n|$)`, {
  before: /(?:^|[|\n])[ \t]{0,60}`?$/,
})
const LOGIN = form(`\\(${B}{0,8}${Q}[^"'\\n\\\\]{1,80}${Q},${B}{0,8}${QUOTED}${B}{0,4}\\)`, {
  name: /(?:Credentials?|Auth|^login|\.login)$/,
  kind: "password",
})

/** The forms, by the character that follows the name. */
const FORMS: Record<string, ValueForm[]> = {
  quote: [
    form(`${Q}${B}{0,4},${B}{0,8}${QUOTED}`, { before: /["'`]$/ }),
    NAME_AND_VALUE,
    CELL,
    form(`${Q}[^<>\\n]{0,60}>${ELEMENT}<`, { before: MARKUP_NAME }),
    form(`${Q}(?:\\r?\\n|\\\\{1,8}r\\\\{1,8}n){2}${BARE}`, { before: MARKUP_NAME, sure: true }),
    form(`${Q} ?\\{[^{}]{0,300}?\\bdefault${B}{0,20}=${B}{0,20}${QUOTED}`, { before: /variable \\{0,8}["']$/ }),
  ],
  newline: [NAME_AND_VALUE],
  ",": [NAME_AND_VALUE],
  "|": [CELL],
  ">": [form(`>${ELEMENT}</`, { before: /<(?:[\w-]{1,20}:)?$/ })],
  "<": [form(`</key>${B}{0,40}<string>${ELEMENT}</`, { before: /<key>$/ })],
  "(": [
    form(`\\(${B}{0,8}${QUOTED}${B}{0,4}[,)]`, {
      name: /(?:^|\.)set[A-Z_]\w*$|\.(?:with_?)?(?:(?:db|user|admin|client|api|access|auth|secret|private|refresh|bearer|bot|proxy|database)_?)*(?:password|passwd|passphrase|secret|token|key)$/i,
    }),
    LOGIN,
  ],
  $: [
    form("\\$(?:production|sandbox)\\$[a-z0-9]{12,20}\\$([0-9a-f]{32})", {
      name: /access_token$/,
      kind: "token",
      sure: true,
    }),
  ],
  space: [
    CELL,
    form(`[ \\t]{1,4}${BARE}[ \\t]{0,80}(?:\\r?\\n|$|\\\\{1,8}[nr])`, {
      before: /(?:^|[\n;&"'`]|\\n)[ \t]{0,8}(?:ENV|ARG|setenv|setx|set -g?x|export)[ \t]{1,4}$/,
      sure: true,
    }),
    form(`[ \\t]{1,8}${BARE}[ \\t]{0,80}(?:\\r?\\n|$|\\\\{1,8}[nr])`, {
      name: /^requirepass$|^masterauth$/,
      kind: "password",
      sure: true,
    }),
    form(
      `[ \\t]{1,3}-[a-zA-Z]{0,4}b[a-zA-Z]{0,4}[ \\t]{1,3}\\S{1,80}[ \\t]{1,3}\\S{1,80}[ \\t]{1,3}(?:${QUOTED}|${BARE})`,
      {
        name: /^htpasswd$/,
        kind: "password",
        sure: true,
      },
    ),
    form(`[^\\n;|&]{0,160}? -[NP] ?(?:${QUOTED}|${BARE})`, { name: /^ssh-keygen$/, kind: "password", sure: true }),
    form(`[ \\t]{1,3}(?:--body|-b)[ =](?:${QUOTED}|${BARE})`, { before: /secret set $/, kind: "token" }),
    form(`[ \\t]{4,60}${BARE}[ \\t]{0,80}(?:\\r?\\n|$)`, { before: /(?:^|\n)[ \t]{0,8}$/ }),
    form(`[ \\t]{1,2}${QUOTED}`, { name: /^ConvertTo-SecureString$/i, kind: "password" }),
    form(`[ \\t]{1,8}BY[ \\t]{1,8}${QUOTED}`, { name: /^identified$/i, kind: "password" }),
    form(`[ \\t]{1,8}${QUOTED}`, { name: /^\w*passw(?:or)?d$/i, kind: "password" }),
    form(`[ \\t]{1,2}(?:${QUOTED}|${BARE})`, { name: /^pass(?:word|wd|phrase)?$/i, kind: "password", strong: true }),
  ],
}

const formsOf = new Map<number, ValueForm[]>()
for (const [sign, forms] of Object.entries(FORMS)) {
  const signs = { quote: "\"'`\\", newline: "\n\r", space: " \t" }[sign] ?? sign
  for (const c of signs) formsOf.set(c.charCodeAt(0), forms)
}

/** Returns the forms that begin with this character after a name. */
export function formsAfter(code: number): readonly ValueForm[] | undefined {
  return formsOf.get(code)
}
