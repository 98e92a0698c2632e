import type { Ledger } from '../../ledger/ledger.ts'
import { stamped } from '../samples/sample-ids.ts'
import type { RuntimeEvent } from '../../events/event.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { require, requireRefusal } from '../contract/requirement.ts'
import { barrier, collect, run, saying, startRun, steering } from '../contract/scenario.ts'

const [next] = stamped(run, [saying('a')], { afterSeq: 1 }) as [RuntimeEvent]

type Asking = (ledger: Ledger, given: never) => AsyncIterable<unknown> | Promise<unknown>

/** A case that asks for what no caller means; each refusal has to name what is wrong. */
function refuses(
  promise: string,
  ask: Asking,
  given: readonly (readonly [unknown, string])[],
): LedgerContractCase {
  return {
    promise,
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      for (const [value, words] of given) {
        // A store may refuse at the call, or when the first item is asked for.
        const asking = (async () => {
          const asked = ask(ledger, value as never)
          return 'then' in asked ? await asked : await collect(asked)
        })()
        const { message } = await requireRefusal(asking, 'configuration')
        require(message.includes(words), `the refusal should say "${words}", but says: ${message}`)
      }
      require((await collect(ledger.read(run))).length === 1, 'the run should be as it was')
    },
  }
}

const entriesByRun: readonly (readonly [string, Asking])[] = [
  ['a read', (ledger, runId) => ledger.read(runId)],
  ['a look for the head', (ledger, runId) => ledger.head(runId)],
  // A store need not know it.
  [
    'a look whether a run is whole',
    (ledger, runId) => (ledger.isWhole ? ledger.isWhole(runId) : ledger.head(runId)),
  ],
  ['a look into the inbox', (ledger, runId) => ledger.inbox(runId)],
  ['a put', (ledger, runId) => ledger.put(runId, steering('k1'))],
  ['a take-over', (ledger, runId) => ledger.acquire(runId)],
  ['an append', (ledger, runId) => ledger.append(runId, { expectedSeq: 1, epoch: 1 }, [next], barrier)],
]

/** What plain JavaScript may ask a ledger by mistake: an answer without the filter would be another answer. */
export const askedCases: readonly LedgerContractCase[] = [
  refuses(
    'a search refuses filters that it does not know, and values that no event has',
    (ledger, query) => ledger.find(query),
    [
      [null, 'is null'],
      [{ type: ['run_finished'] }, 'Did you mean types?'],
      [{ runid: run }, 'Did you mean runId?'],
      [{ runId: 5 }, 'runId is 5'],
      [{ sessionId: 5 }, 'sessionId is 5'],
      [{ toolCallId: 5 }, 'toolCallId is 5'],
      [{ types: 'run_finished' }, 'types is a text'],
      [{ types: ['run_finishd'] }, "Did you mean 'run_finished'?"],
      [{ turn: '1' }, 'turn is a text'],
      [{ turn: 1.5 }, 'turn is 1.5'],
      [{ fromAt: NaN }, 'fromAt is NaN'],
      [{ toAt: '2026-01-01' }, 'toAt is a text'],
      [{ fromAt: 5, toAt: 4 }, 'toAt is before fromAt'],
    ],
  ),
  refuses(
    'a list of runs refuses filters that it does not know, and values that no run has',
    (ledger, filter) => ledger.runs(filter),
    [
      [null, 'is null'],
      [{ sesionId: 'a' }, 'Did you mean sessionId?'],
      [{ sessionId: 5 }, 'sessionId is 5'],
      [{ before: 5 }, 'before is 5'],
      [{ limit: NaN }, 'limit is NaN'],
      [{ limit: -1 }, 'limit is -1'],
      [{ limit: 1.5 }, 'limit is 1.5'],
    ],
  ),
  refuses('a read refuses what is no range of whole numbers', (ledger, range) => ledger.read(run, range), [
    [null, 'is null'],
    [5, 'the range is 5'],
    [{ from: 1 }, 'Did you mean'],
    [{ fromSeq: NaN }, 'fromSeq is NaN'],
    [{ fromSeq: -1 }, 'fromSeq is -1'],
    [{ toSeq: '5' }, 'toSeq is a text'],
  ]),
  ...entriesByRun.map(([verb, ask]) =>
    refuses(`${verb} refuses a run id that is no text`, ask, [
      [undefined, 'the run id is missing'],
      [5, 'the run id is 5'],
      [{ runId: run }, 'the run id is an object'],
    ]),
  ),
  refuses('a tail refuses a cursor that is no text', (ledger, cursor) => ledger.tail(cursor), [
    [null, 'the cursor is null'],
    [5, 'the cursor is 5'],
  ]),
]
