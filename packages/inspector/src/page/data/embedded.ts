import { FileSource } from './file-source.ts'

/** The element that holds the lines of an export within the page; one beside it for each run holds the rows of its record. */
const embeddedId = 'export'
const recordIdOf = (runId: string): string => `record-${runId}`

/** The export that this page was made with; `undefined` without one. */
export function readEmbedded(): FileSource | undefined {
  const element = document.getElementById(embeddedId)
  if (element === null) return undefined
  return new FileSource(element.dataset['title'] ?? 'export', splitLines(element), (runId) => {
    const record = document.getElementById(recordIdOf(runId))
    return record === null ? undefined : splitLines(record).filter((line) => line !== '')
  })
}

function splitLines(element: HTMLElement): string[] {
  return (element.textContent ?? '').split('\n')
}
