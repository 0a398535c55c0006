import { basename } from "node:path"
import { withFolderSpelling } from "../../core/path-key.ts"
import { redactText } from "../../redact/redact.ts"
import { toJson } from "../../render/json.ts"
import { visibleText, withVisibleTexts } from "../../render/visible.ts"
import type { StoredSuggestion } from "../../store/suggestions/suggestions.ts"

export const MAX_BODY_BYTES = 20_000
const MAX_TEXT_LENGTH = 2_000

/**
 * Builds the part of a suggestion that leaves this machine, redacted and shorter than 20 kB: the items, without the prompt or
 * output that led to them, and the project's name without its path.
 */
export function webhookBody({ id, seq, subscription, moment, items }: StoredSuggestion): string {
  for (let count = items.length; ; count--) {
    const { output } = withVisibleTexts({
      type: "suggestion.created",
      timestamp: new Date(moment.at).toISOString(),
      data: {
        id,
        sequence: seq,
        subscription,
        project: basename(moment.project),
        event: moment.event,
        file: moment.file === undefined ? undefined : cleanText(fileIn(moment)),
        items: items.slice(0, count).map(({ number, kind, title, summary, reason, ref, file, symbol, relevance }) => ({
          number,
          kind,
          title: cleanText(title),
          summary: cleanText(summary),
          reason: cleanText(reason),
          ref,
          file: file && cleanText(file),
          symbol: symbol && cleanText(symbol),
          relevance,
        })),
        items_left_out: items.length - count || undefined,
      },
    })
    const body = toJson(output)
    if (Buffer.byteLength(body) < MAX_BODY_BYTES || count === 0) return body
  }
}

/** Hidden characters are removed first, because they could be inside a secret. */
function cleanText(text: string): string {
  return redactText(visibleText(text)).slice(0, MAX_TEXT_LENGTH)
}

function fileIn({ file = "", project }: StoredSuggestion["moment"]): string {
  const spelled = withFolderSpelling(project, file)
  return spelled.startsWith(`${project}/`) ? spelled.slice(project.length + 1) : file
}
