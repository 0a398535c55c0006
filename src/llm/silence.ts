/** A local model may read a long prompt for minutes before its first word. */
export const SILENCE_MS = 600_000

/** `touch` at every sign of life, the first time when the request leaves. Nothing is called after `end`. */
export type Silence = { touch(): void; end(): void }

export function listenForSilence(onSilent: () => void): Silence {
  let timer: NodeJS.Timeout | undefined
  let over = false
  return {
    touch: () => {
      if (over) return
      if (timer) timer.refresh()
      else timer = setTimeout(onSilent, SILENCE_MS)
    },
    end: () => {
      over = true
      clearTimeout(timer)
    },
  }
}
