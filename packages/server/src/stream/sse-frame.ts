/** What one event of a stream of server-sent events carries. */
export interface SseFrame {
  /** A reader that reconnects sends it back as `Last-Event-ID`. */
  readonly id?: string | undefined
  readonly data: string
}

/** A comment, which readers ignore: it shows that the connection lives. */
export const heartbeatFrame = ': \n\n'

/** Returns the text of a frame. */
export function frameText({ id, data }: SseFrame): string {
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${id === undefined ? '' : `id: ${id}\n`}${lines.join('')}\n`
}

/** The headers of a stream: no proxy may hold it back, or keep it. */
export const streamHeaders: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}
