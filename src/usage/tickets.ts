/** Words before a number in a branch's name that do not make it a ticket. */
const NOT_A_PROJECT =
  /^(?:a|b|c|v|rc|fix|fixes|bug|feat|feature|hotfix|task|chore|docs?|test|tests|wip|patch|release|version|part|step|phase|day|week|try|attempt|take|round|draft|port|node|python|py|go|java|utf|sha|iso|rfc|md|http|gpt|claude|opus|sonnet|gemini|codex|llama|qwen|es|oauth|ipv|arm|x|win|h|cve)$/i
/** A key in small letters counts only at the beginning of a part of the name: `explain-2` in `improve-explain-2` is none. */
const KEY = /(?<![A-Za-z0-9])([A-Z][A-Z0-9]{1,9})-(\d{1,7})(?![A-Za-z0-9.])/g
const KEY_IN_BRANCH = /(?:^|\/)([A-Za-z][A-Za-z0-9]{1,9})-(\d{1,7})(?![A-Za-z0-9.])/g
const ISSUE_IN_BRANCH = /(?:^|[/_-])(?:(?:issue|gh|ticket)[-_/]?|#)(\d{1,5})(?![A-Za-z0-9])|(?:^|\/)(\d{1,5})-[A-Za-z]/i
const ISSUE_IN_SUBJECT = /\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?|refs?)\b:?\s+#(\d{1,7})\b/i

/** The ticket in a branch's name: `ENT-109` in `ann/ent-109-text-output`, `#12` in `12-dark-mode` and `issue-12`. */
export function ticketOfBranch(branch: string): string | undefined {
  const issue = ISSUE_IN_BRANCH.exec(branch)
  if (issue) return `#${issue[1] ?? issue[2]}`
  return keyIn(branch, KEY_IN_BRANCH) ?? keyIn(branch, KEY)
}

/** The ticket in a commit's subject: a key in capitals, or the issue that it closes. `(#12)` at the end is a pull request. */
export function ticketOfSubject(subject: string): string | undefined {
  const issue = ISSUE_IN_SUBJECT.exec(subject)?.[1]
  return keyIn(subject, KEY) ?? (issue === undefined ? undefined : `#${issue}`)
}

function keyIn(text: string, pattern: RegExp): string | undefined {
  for (const [, name = "", number] of text.matchAll(pattern))
    if (!NOT_A_PROJECT.test(name)) return `${name.toUpperCase()}-${number}`
  return undefined
}
