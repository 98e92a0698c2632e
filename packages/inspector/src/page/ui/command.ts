import type { RunQuery } from '../../api.ts'

/** The words after `tallystick` for a shell. `LEDGER` is the ledger of the page, where its title is the name of a file. */
export function formatCommand(words: readonly string[], title: string | undefined): string {
  const ledger = title !== undefined && /\.(db|sqlite3?)$/.test(title) ? title : 'LEDGER'
  return ['tallystick', ...words.map((word) => (word === 'LEDGER' ? ledger : word))].map(quoteWord).join(' ')
}

function quoteWord(word: string): string {
  return /^[\w./:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}

const equal = {
  ...{ agent: 'agent', tool: 'tool', outcome: 'outcome', reason: 'reason', feedbackBy: 'by' },
  ...{ sessionId: 'session', subject: 'subject', tag: 'tag' },
} as const

/** The `--where` conditions of a command that choose the runs of a query. */
export function formatConditions(query: RunQuery): readonly string[] {
  const { status, minScore, maxScore, startedSince, startedUntil } = query
  const conditions = [
    ...Object.entries(equal).map(
      ([name, condition]) => [`${condition}=`, query[name as keyof typeof equal]] as const,
    ),
    ['status=', status?.length === 1 ? toCommandStatus(status[0]!) : undefined],
    ['score>=', minScore],
    ['score<=', maxScore],
    ['started>=', formatMoment(startedSince)],
    ['started<', formatMoment(startedUntil)],
  ] as const
  return conditions.flatMap(([condition, value]) =>
    value === undefined ? [] : ['--where', condition + value],
  )
}

/** A command reads the ledger alone, so it does not know whether a process drives a run. */
function toCommandStatus(status: string): string {
  return status === 'under_way' || status === 'interrupted' ? 'unfinished' : status
}

function formatMoment(at: number | undefined): string | undefined {
  return at === undefined ? undefined : new Date(at).toISOString()
}
