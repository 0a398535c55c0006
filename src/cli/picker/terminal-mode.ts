import type { ReadStream, WriteStream } from "node:tty"
import type { Frame } from "./screen.ts"

export type PickerTerminal = {
  /** Draws the lines that changed since the last frame. */
  draw(frame: Frame): void
  /** Makes the next frame draw every line. */
  forget(): void
  /** Sends a sequence that draws nothing. */
  send(sequence: string): void
  /** Takes over the screen, unless that was already done. */
  enter(): void
  /** Restores the screen, unless that was already done. */
  leave(): void
  /** Restores the screen and removes the handlers for the end of the process. */
  close(): void
}

const ENTER_SCREEN = "\x1b[?1049h\x1b[?2004h\x1b[2J"
const LEAVE_SCREEN = "\x1b[?2026l\x1b[0m\x1b[?2004l\x1b[?25h\x1b[?1049l"
const ENDING_SIGNALS = ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"] as const

/**
 * The alternate screen in raw mode. If a signal or an uncaught error ends the process, the terminal is restored first; only kill
 * -9 cannot be handled. An uncaught error is then passed to `onError`.
 */
export function openTerminal(
  input: ReadStream,
  output: WriteStream,
  onError: (error: unknown) => void,
): PickerTerminal {
  let isActive = false
  let lastLines: string[] = []
  const enter = () => {
    if (isActive) return
    isActive = true
    lastLines = []
    input.setRawMode(true)
    output.write(ENTER_SCREEN)
  }
  const leave = () => {
    if (!isActive) return
    isActive = false
    output.write(LEAVE_SCREEN)
    input.setRawMode(false)
  }
  const onSignal = (signal: NodeJS.Signals) => {
    // Ctrl-C is for the pager while one is open.
    if (signal === "SIGINT" && !isActive) return
    leave()
    process.off(signal, onSignal)
    process.kill(process.pid, signal)
  }
  const onUncaught = (error: unknown) => {
    leave()
    onError(error)
  }
  for (const signal of ENDING_SIGNALS) process.on(signal, onSignal)
  process.on("uncaughtException", onUncaught)
  process.on("exit", leave)
  return {
    enter,
    leave,
    draw: (frame) => {
      if (!isActive) return
      output.write(changesOf(lastLines, frame))
      lastLines = frame.lines
    },
    forget: () => {
      lastLines = []
    },
    send: (sequence) => void output.write(sequence),
    close: () => {
      leave()
      for (const signal of ENDING_SIGNALS) process.off(signal, onSignal)
      process.off("uncaughtException", onUncaught)
      process.off("exit", leave)
    },
  }
}

/** One update that a terminal draws in a single step: the changed lines, and the cursor position. */
function changesOf(last: readonly string[], { lines, cursor }: Frame): string {
  const isComplete = last.length !== lines.length
  const changed = lines
    .map((line, i) => (isComplete || line !== last[i] ? `\x1b[${i + 1};1H\x1b[K${line}\x1b[0m` : ""))
    .join("")
  const clear = isComplete ? "\x1b[2J" : ""
  return `\x1b[?2026h\x1b[?25l${clear}${changed}\x1b[${cursor.row + 1};${cursor.column + 1}H\x1b[?25h\x1b[?2026l`
}
