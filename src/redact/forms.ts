import type { SecretKind } from "./secret-names.ts"

// The forms in which a name and its value are written without a colon or an equals sign. Every repetition is bounded, so the cost
// of a form does not depend on the text.

/** Matches a quotation mark, which may be escaped if the text is inside a string. */
const QUOTE_MARK = "\\\\{0,8}[\"'`]"
/** Matches white space, which may be written as an escape if the text is inside a string. */
const BLANK = "(?:\\s|\\\\{1,8}[nrt])"
const QUOTED = `${QUOTE_MARK}([^"'\`\\s\\\\<>]{6,256})${QUOTE_MARK}`
const UNQUOTED = "([^\\s\"'`|<>\\\\,;]{6,256})"
const ELEMENT = "([^<>\\s]{6,256})"
/** Matches another field between the name and the value. */
const FIELD = `(?:${QUOTE_MARK})?[\\w-]{1,30}(?:${QUOTE_MARK})?[ \\t]{0,3}[:=][ \\t]{0,3}(?:${QUOTE_MARK})?[\\w./-]{0,40}(?:${QUOTE_MARK})?${BLANK}{0,40}(?:,${BLANK}{0,40})?`

export type ValueForm = {
  /** Matches the text before the name. */
  before?: RegExp
  /** Matches the last part of the name. */
  name?: RegExp
  /** Matches the text after the name; one of its groups is the value. */
  after: RegExp
  /** True if a value in this position can only be a secret. */
  isCertain?: true
  /** The kind of the value if the name does not determine it. */
  kind?: SecretKind
  /** True if nothing around the value indicates a secret, so that it must contain letters, digits and symbols. */
  mustBeStrong?: true
}

const form = (after: string, rest: Omit<ValueForm, "after"> = {}): ValueForm => ({
  after: new RegExp(after, "iyd"),
  ...rest,
})

const NAME_FIELD =
  /(?:name|key|variable|parameter|field)\\{0,8}["'`]?[ \t]{0,3}[:=][ \t]{0,3}\\{0,8}["'`]?(?:\/?[\w.-]{1,40}\/){0,6}$/i
const MARKUP_NAME = /(?:name|key|id)=\\{0,8}["']$/i

const NAME_AND_VALUE = form(
  `(?:${QUOTE_MARK})?${BLANK}{0,40}(?:,${BLANK}{0,40})?(?:${FIELD}){0,3}?(?:${QUOTE_MARK})?(?:Parameter)?value(?:${QUOTE_MARK})?[ \\t]{0,3}[:=][ \\t]{0,3}(?:${QUOTED}|${UNQUOTED})`,
  { before: NAME_FIELD, isCertain: true },
)
const CELL = form(`\`?[ \\t]{0,60}\\|[ \\t]{0,60}\`?${UNQUOTED}\`?[ \\t]{0,80}(?:\\||\\r?\\n|$)`, {
  before: /(?:^|[|\n])[ \t]{0,60}`?$/,
})
const LOGIN = form(
  `\\(${BLANK}{0,8}${QUOTE_MARK}[^"'\\n\\\\]{1,80}${QUOTE_MARK},${BLANK}{0,8}${QUOTED}${BLANK}{0,4}\\)`,
  {
    name: /(?:Credentials?|Auth|^login|\.login)$/,
    kind: "password",
  },
)

/** The forms, by the character that follows the name. */
const FORMS: Record<string, ValueForm[]> = {
  quote: [
    form(`${QUOTE_MARK}${BLANK}{0,4},${BLANK}{0,8}${QUOTED}`, { before: /["'`]$/ }),
    NAME_AND_VALUE,
    CELL,
    form(`${QUOTE_MARK}[^<>\\n]{0,60}>${ELEMENT}<`, { before: MARKUP_NAME }),
    form(`${QUOTE_MARK}(?:\\r?\\n|\\\\{1,8}r\\\\{1,8}n){2}${UNQUOTED}`, { before: MARKUP_NAME, isCertain: true }),
    form(`${QUOTE_MARK} ?\\{[^{}]{0,300}?\\bdefault${BLANK}{0,20}=${BLANK}{0,20}${QUOTED}`, {
      before: /variable \\{0,8}["']$/,
    }),
  ],
  newline: [NAME_AND_VALUE],
  ",": [NAME_AND_VALUE],
  "|": [CELL],
  ">": [form(`>${ELEMENT}</`, { before: /<(?:[\w-]{1,20}:)?$/ })],
  "<": [form(`</key>${BLANK}{0,40}<string>${ELEMENT}</`, { before: /<key>$/ })],
  "(": [
    form(`\\(${BLANK}{0,8}${QUOTED}${BLANK}{0,4}[,)]`, {
      name: /(?:^|\.)set[A-Z_]\w*$|\.(?:with_?)?(?:(?:db|user|admin|client|api|access|auth|secret|private|refresh|bearer|bot|proxy|database)_?)*(?:password|passwd|passphrase|secret|token|key)$/i,
    }),
    LOGIN,
  ],
  $: [
    form("\\$(?:production|sandbox)\\$[a-z0-9]{12,20}\\$([0-9a-f]{32})", {
      name: /access_token$/,
      kind: "token",
      isCertain: true,
    }),
  ],
  space: [
    CELL,
    form(`[ \\t]{1,4}${UNQUOTED}[ \\t]{0,80}(?:\\r?\\n|$|\\\\{1,8}[nr])`, {
      before: /(?:^|[\n;&"'`]|\\n)[ \t]{0,8}(?:ENV|ARG|setenv|setx|set -g?x|export)[ \t]{1,4}$/,
      isCertain: true,
    }),
    form(`[ \\t]{1,8}${UNQUOTED}[ \\t]{0,80}(?:\\r?\\n|$|\\\\{1,8}[nr])`, {
      name: /^requirepass$|^masterauth$/,
      kind: "password",
      isCertain: true,
    }),
    form(
      `[ \\t]{1,3}-[a-zA-Z]{0,4}b[a-zA-Z]{0,4}[ \\t]{1,3}\\S{1,80}[ \\t]{1,3}\\S{1,80}[ \\t]{1,3}(?:${QUOTED}|${UNQUOTED})`,
      {
        name: /^htpasswd$/,
        kind: "password",
        isCertain: true,
      },
    ),
    form(`[^\\n;|&]{0,160}? -[NP] ?(?:${QUOTED}|${UNQUOTED})`, {
      name: /^ssh-keygen$/,
      kind: "password",
      isCertain: true,
    }),
    form(`[ \\t]{1,3}(?:--body|-b)[ =](?:${QUOTED}|${UNQUOTED})`, { before: /secret set $/, kind: "token" }),
    form(`[ \\t]{4,60}${UNQUOTED}[ \\t]{0,80}(?:\\r?\\n|$)`, { before: /(?:^|\n)[ \t]{0,8}$/ }),
    form(`[ \\t]{1,2}${QUOTED}`, { name: /^ConvertTo-SecureString$/i, kind: "password" }),
    form(`[ \\t]{1,8}BY[ \\t]{1,8}${QUOTED}`, { name: /^identified$/i, kind: "password" }),
    form(`[ \\t]{1,8}${QUOTED}`, { name: /^\w*passw(?:or)?d$/i, kind: "password" }),
    form(`[ \\t]{1,2}(?:${QUOTED}|${UNQUOTED})`, {
      name: /^pass(?:word|wd|phrase)?$/i,
      kind: "password",
      mustBeStrong: true,
    }),
  ],
}

const formsOf = new Map<number, ValueForm[]>()
for (const [following, forms] of Object.entries(FORMS)) {
  const characters = { quote: "\"'`\\", newline: "\n\r", space: " \t" }[following] ?? following
  for (const c of characters) formsOf.set(c.charCodeAt(0), forms)
}

/** Returns the forms that begin with this character after a name. */
export function formsAfter(code: number): readonly ValueForm[] | undefined {
  return formsOf.get(code)
}
