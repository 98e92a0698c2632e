/** A stream of a process that text is read from. */
export type InputStream = NodeJS.ReadableStream & {
  readonly isTTY?: boolean
  readonly readableEnded?: boolean
  readonly setRawMode?: (isRaw: boolean) => unknown
}

/**
 * Asks a person at the terminal for a line. What was typed before the question stood there is forgotten. Resolves with
 * `undefined` when they leave by Ctrl-C or Ctrl-D.
 */
export async function askLine(
  input: InputStream,
  output: NodeJS.WritableStream,
  question: string,
): Promise<string | undefined> {
  // Few programs ask, and all begin sooner without it.
  const readline = import('node:readline')
  await forgetTyped(input)
  if (input.readableEnded === true) return undefined
  const { createInterface } = await readline
  return await new Promise((resolve) => {
    const terminal = createInterface({ input, output, terminal: true, historySize: 0 })
    terminal.once('SIGINT', () => terminal.close())
    terminal.once('close', () => resolve(undefined))
    // Further lines of the same paste go nowhere: they were typed before what is asked next.
    terminal.once('line', (line) => {
      resolve(line.trim())
      terminal.close()
    })
    terminal.setPrompt(question)
    terminal.prompt()
  })
}

/** So many turns of the event loop without input, and what the system and the stream had is read. */
const quietTurns = 3

async function forgetTyped(input: InputStream): Promise<void> {
  // A line that was begun is held by the system until it is ended, unless the terminal is raw.
  input.setRawMode?.(true)
  let quiet = 0
  const forget = (): void => void (quiet = 0)
  input.on('data', forget)
  input.resume()
  while (quiet++ < quietTurns) await new Promise((resolve) => setImmediate(resolve))
  input.off('data', forget)
  input.pause()
  if (input.readableEnded === true) input.setRawMode?.(false)
}
