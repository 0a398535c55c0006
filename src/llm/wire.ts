import type { IncomingHttpHeaders, IncomingMessage } from "node:http"

/** What the server, or the way to it, did instead of answering. */
export type Trouble =
  | { type: "status"; status: number; headers: IncomingHttpHeaders; body: string }
  | { type: "network"; code: string }
  | { type: "answer"; what: string }

type Options = {
  onTrouble: (trouble: Trouble) => void
  /** The server took the request. */
  onAnswer: () => void
  /** When the request leaves, and at every sign of life. */
  onBytes: () => void
}

const MOST_BYTES = 64 << 20
/** Of what a server says when it refuses. */
const MOST_WORDS = 16 << 10

/**
 * How the AI SDK reaches the server: a `fetch` that follows no redirect, reads no more than 64 MB, and does not give up
 * after five minutes, as Node's own does. What goes wrong is told to `onTrouble`, in full, before it is thrown.
 */
export function fetchOver({ onTrouble, onAnswer, onBytes }: Options): typeof fetch {
  const fail = (trouble: Trouble): Error => {
    onTrouble(trouble)
    return new Error("The request failed.")
  }
  const bytesOf = async function* (answer: IncomingMessage): AsyncGenerator<Uint8Array> {
    let bytes = 0
    try {
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        onBytes()
        bytes += chunk.length
        if (bytes > MOST_BYTES) throw fail({ type: "answer", what: "sent more than 64 MB" })
        yield chunk
      }
    } catch (error) {
      const code = codeOf(error)
      throw code === undefined ? error : fail({ type: "network", code })
    }
  }
  return async (url, init) => {
    onBytes()
    const answer = await post(String(url), init!).catch((error: unknown) => {
      throw fail({ type: "network", code: codeOf(error) ?? "unknown" })
    })
    onBytes()
    const status = answer.statusCode!
    if (status < 200 || status > 299)
      throw fail({ type: "status", status, headers: answer.headers, body: await beginning(answer) })
    onAnswer()
    const kind = (answer.headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase()
    if (kind === "text/html") {
      answer.destroy()
      throw fail({ type: "answer", what: "answered with a web page" })
    }
    if (kind !== "application/json") return new Response(ReadableStream.from(bytesOf(answer)), { status })
    const chunks: Uint8Array[] = []
    for await (const chunk of bytesOf(answer)) chunks.push(chunk)
    const event = asEvent(Buffer.concat(chunks).toString("utf8"))
    if (event === undefined) throw fail({ type: "answer", what: "did not answer as a chat-completions server does" })
    return new Response(event, { status })
  }
}

async function post(url: string, { headers, body, signal }: RequestInit): Promise<IncomingMessage> {
  const { request } = await (url.startsWith("https:") ? import("node:https") : import("node:http"))
  const content = Buffer.from(String(body))
  const sent = {
    ...Object.fromEntries(new Headers(headers ?? {})),
    accept: "text/event-stream, application/json",
    "content-length": content.length,
    "user-agent": "dex",
  }
  const once = () =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request(url, { method: "POST", headers: sent, ...(signal && { signal }) }, resolve)
      asked.on("error", (error) => reject(Object.assign(error, { reused: asked.reusedSocket })))
      asked.end(content)
    })
  return once().catch((error: { code?: unknown; reused?: boolean }) => {
    // The server closed an idle connection at the moment it was used again.
    if (error.code === "ECONNRESET" && error.reused && !signal?.aborted) return once()
    throw error
  })
}

/** A whole answer as the stream that was asked for: some servers do not stream. */
function asEvent(text: string): string | undefined {
  try {
    const answer = JSON.parse(text) as { error?: unknown; choices?: { message?: unknown }[] } | null
    if (answer?.error) return `data: ${JSON.stringify({ error: answer.error })}\n\n`
    if (!Array.isArray(answer?.choices)) return undefined
    const choices = answer.choices.map(({ message, ...choice }) => ({ ...choice, delta: message }))
    return `data: ${JSON.stringify({ ...answer, choices })}\n\n`
  } catch {
    return undefined // said by the caller
  }
}

/** Never throws: a refusal counts, whether all of its words arrive or not. */
async function beginning(answer: IncomingMessage): Promise<string> {
  let text = ""
  try {
    for await (const chunk of answer.setEncoding("utf8") as AsyncIterable<string>) {
      text += chunk
      if (text.length >= MOST_WORDS) break
    }
  } catch {
    // what came is enough
  }
  return text.slice(0, MOST_WORDS)
}

function codeOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  return typeof code === "string" ? code : undefined
}
