import { subjectOf } from "./subject.ts"

// Which of a person's sentences state a lasting choice, and which only ask, report or give a task.

/** A longer sentence was pasted. */
const LONGEST_SENTENCE = 500
const LOOKED_AT = 20_000
/** In what was pasted from a log or a review, only sentences in the first person are the person's own. */
const FENCE = /^\s*(?:```|"""|~~~)/

/** What agents write in the person's name around what was typed. */
const WRAPPERS = [
  "Operation stopped by hook",
  "The user wants to clarify these questions.",
  "Full transcript available at:",
  "Read the output file to retrieve the result:",
]

/** The sentences of a person's message that state a decision, as they stand there. */
export function decidedIn(text: string): string[] {
  const looked = text
    .slice(0, LOOKED_AT)
    .trimStart()
    .replace(/^\/[\w:-]+\s+/, "") // what follows a slash command is typed
  if (/^[/!]/.test(looked) || WRAPPERS.some((words) => looked.startsWith(words))) return []
  const lines = ownLines(looked)
  const pasted = isPasted(looked, lines)
  const stands = (sentence: string) => (!pasted || OWN_VOICE.test(sentence)) && isDecision(sentence)
  return lines.flatMap((line, i) =>
    sentencesOf(line)
      .filter(stands)
      .flatMap((sentence) =>
        sentence.endsWith(":") ? withWhatFollows(sentence, lines.slice(i + 1), stands) : [sentence],
      ),
  )
}

const RETREAT =
  /^(?:(?:ok|okay|no|yeah|hmm|actually)[,\s]+){0,2}(?:let's |lets |we |please |i'd )?(?:go|switch|change|roll)(?:ing)? (?:it |that )?back(?: to (?:what|how) (?:we|it) (?:had|was))?[.!]?$|^(?:(?:ok|okay|no|yeah|hmm|actually)[,\s]+){0,2}(?:let's |lets |please )?(?:revert|undo|scrap|drop) (?:that|this|it|those|these)(?: changes?)?[.!]?$/i

/** Sentences that take back what was decided before, without saying what that was. */
export function retreatsIn(text: string): string[] {
  return ownLines(text.slice(0, LOOKED_AT))
    .flatMap(sentencesOf)
    .filter((sentence) => isRetreat(sentence))
}

export function isRetreat(sentence: string): boolean {
  return RETREAT.test(sentence)
}

/** Lines that the person typed: no fenced block, no quote, no output of a program. */
export function ownLines(text: string): string[] {
  const kept: string[] = []
  let fenced = false
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) fenced = !fenced
    else if (!fenced && !isOutput(line)) kept.push(line.trim())
  }
  return kept.filter((line) => line !== "")
}

const OUTPUT =
  /^\s*(?:[>❯$|⎿⏺✓✗+●└├─╭│╰=]|\d{4}-\d\d-\d\d[T ]|\{"|at \S+ \(|(?:---|===) |(?:FAIL|PASS|Error|fatal|warning|remote)\b:|ok\s{2}|[\w./-]+\.\w{1,5}:\d+)/

function isOutput(line: string): boolean {
  return OUTPUT.test(line) || line.length > 2_000 || line.endsWith("   ")
}

const LIST_MARK = /^(?:[-*•]|\(?\d{1,2}[.):]|\(?[A-Za-z][.)]|#\d{1,2})\s+/

export function sentencesOf(line: string): string[] {
  return line
    .replace(LIST_MARK, "")
    .split(/(?<=[.!?…])\s+/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence.length > 3 && sentence.length <= LONGEST_SENTENCE)
}

const LONGEST_SHOWN = 300

/** "I want it to behave like:" says nothing without what comes after it, and nothing more where that speaks for itself. */
function withWhatFollows(sentence: string, after: string[], stands: (sentence: string) => boolean): string[] {
  if (sentencesOf(after[0] ?? "").some(stands)) return []
  let shown = sentence
  for (const line of after) {
    if (shown.length + line.length > LONGEST_SHOWN) break
    shown += `\n${line}`
  }
  return [shown]
}

const REVIEW =
  /^(?:low|medium|high|critical) severity\b|\bconsider (?:adding|using|extracting|removing|checking|caching|exposing|either|whether|clarifying|updating)\b/i
const OWN_VOICE = /\b(?:I|I'd|I'm|let's|lets|we (?:should|want|need|don't|had|explicitly|are changing))\b/i
/** As agents write, and hardly anybody who types. */
const MARKED_UP = /\s—\s|\*\*\S/
const VOICE = /\b(?:I|we|us|our|my|let's|can you|could you)\b/i
/** Whoever types this much speaks of themselves somewhere. */
const LONG = 250
const MOST_OUTPUT = 1

/** A reviewer's words, who advises, or a program's: nobody decided that yet. */
function isPasted(text: string, lines: string[]): boolean {
  if (lines.some((line) => REVIEW.test(line))) return true
  if (text.length > LONG && !VOICE.test(lines.join("\n"))) return true
  const made = text.split("\n").filter((line) => isOutput(line) || MARKED_UP.test(line)).length
  return made > MOST_OUTPUT
}

const ASKS =
  /^\(?if we (?:do|did) (?:this|that)\b|\?\s*[)"'\p{Extended_Pictographic}\s]*$|^(?:(?:and|but|so|ok|okay|yes|yeah|or|also|then|now|hmm|question|q|actually|please|ah|oh|maybe|wait)[\s,:.-]+){0,3}(?:can|could|would|will|should|shall|do|does|did|is|are|was|were|isn't|aren't|has|have|why|what|when|where|which|who|how|any)\s+(?:you|we|i|it|this|that|they|there|the|these|those|about|come|is|are|do|does|kind|other|ideas?)\b/iu

/** Work that ends with this conversation. */
const TASK =
  /\b(?:commit (?:this|it|the|and|first)|push(?:ed)?\b(?! hook)|pull request|\bPRs?\b|rebase|merge (?:conflict|from|main|with)|draft|this branch|new branch|linear|open an? issue|log (?:an?|this)|move on|look at|take a look|(?:^|let's |please |and |then |to )check\b|double.?check|review|investigate|debug|(?:write|create|generate|give) [\w\s]{0,20}summary|explain (?:me|to|this|again)|read the|show me|give me|tell me|let me know|run (?:the|it|them|mise|npm|all)|fix (?:it|them|the|this|all|that|both|lint)|(?:add|write|create|have) (?:an?|some|the|more|another|few|new|explicit|integration|unit)[\w\s-]{0,30}tests?\b|test (?:case|coverage)|release notes|come back|later\b|first pass|stash|screenshot|can you|could you|would you|\btests? should\b|let's summarize|write (?:down|the|this)|like to explain|need to commit|let's go -|don't worry|just continue|ignore this|let's (?:check|first|start|create|write)|let's (?:implement|do) (?:this|that|it|the (?:fix|implementation)|a fix)|like to (?:generate|refactor|verify|do|see|know|work|test|understand|word)|make sure this is tested|superpowers|branch name|(?:file|README|readme)(?:\.\w+)?\.$|integration tests?)/i

/** Not sure yet. */
const HEDGED =
  /\b(?:wonder(?:ing)?|maybe|not sure|i guess|any (?:ideas|suggestions|thoughts)|what do you think|considering|brainstorm|let's (?:discuss|talk|see|think))\b/i

/** What happens, not what ought to. */
const REPORTS =
  /\b(?:bug|broken|fail(?:s|ed|ing|ure)?|error|not working|doesn't work|does not work|i (?:just )?(?:got|get|see|saw|noticed|tried|had|ran)|i'm (?:getting|seeing|not seeing)|seems? to|looks? like|would have expected|this means|should have (?:the|been|had|failed)|should\b[^,;]*\balready\b|for example|did not say|this is important|you (?:wrote|said))\b/i

type Cue = [pattern: RegExp, weight: number]

/** How people say that something is to be so. */
const STATES: Cue[] = [
  [
    /\b(?:we|i|they|team) (?:have |had )?(?:\w+ )?(?:decided|agreed|settled|chose|choosed|concluded)\b|\bon purpose\b|\bthe only way\b|\binternal discussion\b/i,
    3,
  ],
  [
    /\b(?:we|it|this|that|there|they|which|these|those|you just|cli|command|file|flag|hook|view|branch|option)\b[^,;.]{0,40}?\b(?:should|shouldn't|needs? to|must|has to|have to|ought to)\b/i,
    2,
  ],
  [/\b(?:should|shouldn't)\b/i, 1],
  [
    /^\S+(?: \S+){0,6} should(?:n't)? (?:not |also |still |always |only |never )?(?!have\b|be (?:in|the|there)\b)\w+/i,
    1,
  ],
  [/\bi (?:don't|do not) (?:want|like|think we (?:need|should))\b/i, 2],
  [/\bwe (?:\w+ )?(?:want|need|don't (?:want|need)|do not (?:want|need)|removed|accept)\b/i, 2],
  [
    /\bi(?:'d| would| do| also| \w+ also| just)? (?:really |rather )?(?:want|like|prefer|rather|suggest|replace|go with|apply|expect|keep|use)\b/i,
    2,
  ],
  [
    /\b(?:let's|lets)\s+(?:also |just |instead |completely |only |not |then )*(?:use|keep|remove|drop|rename|call|make|set|add|replace|apply|include|go with|skip|move|adjust|do|separate|hide|allow|store|have|try|implement|update|change|put|stick|switch|focus|disable|enable|show)\b/i,
    2,
  ],
  [/\b(?:let's|lets) (?:go with|use|keep|remove|drop|rename|skip|set|replace|include|apply|completely|only|not)\b/i, 1],
  [
    /^(?:(?:and|also|please|but)[\s,]+|(?:no|nope|nah|yes|yeah|ok|okay|sure)[,:]\s+)?(?:do not|don't|never|always|keep|use|make sure|ensure|remove|drop|avoid|prefer|leave)\b/i,
    2,
  ],
  [/\b(?:option|approach|variant) (?:\d|[A-F]\b)(?!:)|\bis the right (?:approach|thing|way)\b|\boptions? \d\b/i, 2],
  [
    /\b(?:is|it's|are) (?:totally |perfectly )?(?:fine|ok|okay|acceptable|good enough|a fair assumption|redundant|obsolete)\b/i,
    2,
  ],
  [/\b\w+ only(?: for now)?[.!]?$/i, 2],
]

/** What often stands beside it, and as often elsewhere: a contrast, a reason, a rule's reach, an answer's beginning. */
const SUPPORTS: RegExp[] = [
  /\binstead of\b|\brather than\b|,? (?:and|but) not\b|\bnot \S+ but\b/i,
  /, not \w+|\binstead\b|\bno need to\b|\bno longer\b|\bany ?more\b|\bback to\b/i,
  /\b(?:always|never|only|must|everywhere|wherever|by default|source of truth|whenever|entirely|completely|at least)\b/i,
  /\b(?:because|since|so that|so we|due to|otherwise|for clarity|for consistency|the reason)\b/i,
  /\bwe (?:\w+ )?(?:keep|use|allow|show|store)\b/i,
  /^(?:no,|nope|nah|yes|yeah|ok|okay|sure)[,\s-]+(?=\S+\s+\S+\s+\S+)/i,
  /^(?:no|nope|nah)(?:,| (?:i|we|it|this|that|let's|don't|need|revert|just|not)\b)/i,
  /\bfor now\b/i,
]

const ENOUGH = 2
/** "Let's do that" decides something, but does not say what. */
const LEAST_SUBJECT = 2
const PLAIN = 3
const OPTION = /\S\s+(?:\S+\s+)?options? (?:\d|[A-F]\b)/i

/** True for what asks, with a question mark or without. */
export function isQuestion(text: string): boolean {
  return ASKS.test(text)
}

export function isDecision(sentence: string): boolean {
  if (sentence.length > LONGEST_SENTENCE) return false
  if (ASKS.test(sentence) || HEDGED.test(sentence)) return false
  const stated = STATES.reduce((sum, [pattern, weight]) => sum + (pattern.test(sentence) ? weight : 0), 0)
  if (stated === 0) return false
  const supported = SUPPORTS.filter((pattern) => pattern.test(sentence)).length
  const score = stated + supported - (TASK.test(sentence) ? 3 : 0) - (REPORTS.test(sentence) ? 2 : 0)
  if (score < ENOUGH) return false
  const about = subjectOf(sentence).length
  return about >= LEAST_SUBJECT || (about > 0 && score >= PLAIN) || OPTION.test(sentence)
}
