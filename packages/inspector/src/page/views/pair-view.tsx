import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { goTo, lastSeq, worker } from '../state/open-run.ts'
import { go, route, runId } from '../state/route.ts'
import { rows } from '../state/runs.ts'
import { source } from '../state/source.ts'
import { useRead } from '../state/use-read.ts'
import { fence } from '../ui/fence.ts'
import { LineDiff } from '../ui/line-diff.tsx'
import { Same } from '../ui/same.tsx'
import { toneOfOutcome } from '../ui/status.tsx'
import { formatCost, LongText, shortenId, showHidden } from '../ui/text.tsx'
import type { Pair, PairRow, PairSide, PairTurn } from '../worker/pair.ts'

/** The open run beside another one, turn by turn, from the place where they part. */
export function PairView(): JSX.Element {
  const other = route.value.with
  const key = other === undefined ? undefined : `${runId.value} ${lastSeq.value} ${other}`
  const { value: pair, error, isOld } = useRead(key, () => worker.readPair(source.value.locateRun(other!)))
  return (
    <div class="facts" aria-busy={isOld}>
      <Choice />
      {other !== undefined && error !== undefined && (
        <p class="notice bad" role="alert">
          The runs cannot be compared: {showHidden(error)}
        </p>
      )}
      {other !== undefined && error === undefined && pair === undefined && <p class="soft">Reading …</p>}
      {other !== undefined && pair !== undefined && <Compared pair={pair} other={other} />}
    </div>
  )
}

/** Chooses the other run: the origin of a fork, the forks of the run, or any run by its id. */
function Choice(): JSX.Element {
  const open = runId.value
  const { parent } = useRead(`${open} ${lastSeq.value > 0}`, () => worker.readStart()).value ?? {}
  const [typed, setTyped] = useState('')
  const { with: other } = route.value
  const forks = rows.value.filter((row) => row.parent?.relation === 'fork' && row.parent.runId === open)
  const offered = [
    ...(parent?.relation === 'fork' || parent?.relation === 'branch'
      ? [{ runId: parent.runId, words: `its origin, from event ${parent.seq} on` }]
      : []),
    ...forks.map((fork) => ({ runId: fork.runId, words: `its fork at event ${fork.parent!.seq}` })),
  ].filter(({ runId: id }) => id !== other)
  return (
    <form
      class="pair-choice"
      onSubmit={(event) => {
        event.preventDefault()
        if (typed.trim() !== '') go({ with: typed.trim() })
      }}
    >
      {other === undefined ? (
        <label>
          Compare with run{' '}
          <input
            list="other-runs"
            class="mono"
            placeholder="id of a run"
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
      ) : (
        <button type="button" class="quiet" onClick={() => go({ with: undefined })}>
          ‹ Another run
        </button>
      )}
      <datalist id="other-runs">
        {rows.value
          .filter((row) => row.runId !== open)
          .map((row) => (
            <option key={row.runId} value={row.runId}>
              {showHidden(`${row.agent}: ${row.firstWords ?? ''}`).slice(0, 80)}
            </option>
          ))}
      </datalist>
      {other === undefined && <button type="submit">Compare</button>}
      {offered.map((each) => (
        <button type="button" key={each.runId} onClick={() => go({ with: each.runId })}>
          {each.words}
        </button>
      ))}
    </form>
  )
}

function Compared({ pair, other }: { readonly pair: Pair; readonly other: string }): JSX.Element {
  const { shared, isSame, differences, left, right, rows: turns } = pair
  return (
    <>
      <p>
        {isSame ? (
          <span class="badge good">✓ they say the same</span>
        ) : (
          <span class="badge wait">≠ they part after {shared} shared events</span>
        )}
      </p>
      <div class="pair-head">
        <Side name="This run" side={left} onFirst={(seq) => goTo(seq)} />
        <Side
          name="Other run"
          side={right}
          onFirst={(seq) => go({ run: other, at: seq, with: left.runId })}
        />
      </div>
      {!isSame && (
        <section class="section">
          <h3>First difference</h3>
          <p class="soft">− this run, + the other run</p>
          {left.first && right.first && left.first.type !== right.first.type && (
            <p>
              This run: <b>{left.first.type}</b>. Other run: <b>{right.first.type}</b>.
            </p>
          )}
          {(left.first === undefined || right.first === undefined) && (
            <p>{left.first === undefined ? 'This run' : 'The other run'} ends here.</p>
          )}
          {differences.map(({ path, left: mine, right: its }) => (
            <div key={path}>
              <code class="soft">{showHidden(path)}</code>
              <LineDiff before={mine?.text ?? ''} after={its?.text ?? ''} />
            </div>
          ))}
          <details>
            <summary>Both events</summary>
            <div class="pair-head">
              {[left.first, right.first].map((first, index) => (
                <div key={index}>
                  {first === undefined ? (
                    <p class="soft">None.</p>
                  ) : (
                    <LongText text={first.payload.text} length={first.payload.length} />
                  )}
                </div>
              ))}
            </div>
          </details>
        </section>
      )}
      <section class="section">
        <h3>Turn by turn</h3>
        <ol class="pair-rows">
          {turns.map((row) => (
            <Row key={row.turn} row={row} />
          ))}
        </ol>
      </section>
      <Same
        command={['diff', 'LEDGER', left.runId, right.runId]}
        path={`runs/${left.runId}/diff?with=${encodeURIComponent(right.runId)}`}
        json={() => pair}
        markdown={() => toMarkdown(pair)}
      />
    </>
  )
}

function Side({
  name,
  side,
  onFirst,
}: {
  readonly name: string
  readonly side: PairSide
  readonly onFirst: (seq: number) => void
}): JSX.Element {
  const { runId: id, agent, reason, first, turns, toolCalls, reused, costUsd } = side
  return (
    <div>
      <h3>{name}</h3>
      <p>
        {showHidden(agent)} <code title={id}>{shortenId(id)}</code>
      </p>
      <p class="soft">
        From there on: {turns} turns, {toolCalls} calls{reused > 0 && ` (${reused} reused)`}
        {costUsd !== undefined && `, ${formatCost(costUsd)}`}. {reason?.replaceAll('_', ' ') ?? 'Not ended.'}
      </p>
      {first && (
        <p>
          <button type="button" class="quiet" onClick={() => onFirst(first.seq)}>
            parts at event {first.seq}
          </button>
        </p>
      )}
    </div>
  )
}

const signs: Readonly<Record<PairRow['is'], readonly [sign: string, words: string]>> = {
  same: ['=', 'the same'],
  parts_here: ['≠', 'they part here'],
  after: ['', 'after they parted'],
}

function Row({ row }: { readonly row: PairRow }): JSX.Element {
  const { turn, is, left, right } = row
  const [sign, words] = signs[is]
  return (
    <li class={is}>
      <p class="turn">
        <b>Turn {turn}</b>{' '}
        <span class={is === 'parts_here' ? 'badge wait' : 'soft'}>
          <span aria-hidden="true">{sign}</span> {words}
        </span>
      </p>
      {is === 'same' ? (
        left && <Turn turn={left} />
      ) : (
        <div class="pair-head">
          <Turn turn={left} />
          <Turn turn={right} />
        </div>
      )}
    </li>
  )
}

function Turn({ turn }: { readonly turn: PairTurn | undefined }): JSX.Element {
  if (turn === undefined) return <p class="soft">No such turn.</p>
  const { said, calls, tokens, costUsd, attempts } = turn
  return (
    <div>
      {said.text !== '' && <LongText text={said.text} length={said.length} />}
      {calls.map(({ toolCallId, name, outcome }) => (
        <p key={toolCallId}>
          <code>{showHidden(name)}</code>{' '}
          <span class={`badge ${toneOfOutcome(outcome)}`}>
            {outcome?.replaceAll('_', ' ') ?? 'no result'}
          </span>
        </p>
      ))}
      <p class="soft">
        {tokens !== undefined && `${tokens.toLocaleString()} tokens`}
        {costUsd !== undefined && `, ${formatCost(costUsd)}`}
        {attempts > 1 && `, ${attempts} attempts`}
      </p>
    </div>
  )
}

function toMarkdown({ shared, differences, left, right, rows: turns }: Pair): string {
  const said = (turn: PairTurn | undefined): string =>
    turn === undefined ? '(none)' : [turn.said.text, ...turn.calls.map(({ name }) => `→ ${name}`)].join('\n')
  return [
    `# ${left.runId} and ${right.runId}`,
    `${shared} events say the same.`,
    ...differences.map(
      ({ path, left: mine, right: its }) =>
        `## ${path}\n\n${fence(mine?.text ?? '')}\n\n${fence(its?.text ?? '')}`,
    ),
    ...turns
      .filter(({ is }) => is !== 'same')
      .map((row) => `## Turn ${row.turn}\n\n${fence(said(row.left))}\n\n${fence(said(row.right))}`),
  ].join('\n\n')
}
