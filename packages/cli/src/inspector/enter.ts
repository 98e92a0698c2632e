import { type CommandContext, printEither } from '../command/context.ts'

/** A way in. */
interface Entry {
  /** Returns the URL of the page, with a new ticket. */
  readonly makeUrl: () => string
  /** Opens it in the browser of a person who reads along. */
  readonly isOpened: boolean
  /** False if a process before this one has offered it. */
  readonly isFirst?: boolean
}

/** Prints the URL of the page, and another one at each Enter, since its ticket counts once. Returns what ends that. */
export async function offerEntry(
  context: CommandContext,
  { makeUrl, isOpened, isFirst = true }: Entry,
): Promise<() => void> {
  const { stdin, person, isRead, say } = context
  if (isFirst) {
    const url = makeUrl()
    await printEither(context, { url }, `${url}\n`)
    if (isOpened && isRead) await openBrowser(context, url)
    if (person) say('The link lets one browser in. Press Enter for another one.')
  }
  if (person === undefined) return () => {}
  const printAnother = (): void => void context.print(`${makeUrl()}\n`)
  stdin.on('data', printAnother)
  return () => {
    stdin.off('data', printAnother)
    stdin.pause()
  }
}

/** Opens a URL in the browser of this user. The URL was printed, so it is no error that there is none. */
async function openBrowser({ say }: CommandContext, url: string): Promise<void> {
  const { default: open } = await import('open')
  try {
    const opener = await open(url)
    opener.once('error', () => say('No browser could be opened.'))
  } catch {
    say('No browser could be opened.')
  }
}
