import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { waits, worker } from '../state/open-run.ts'
import { go, runId } from '../state/route.ts'
import { may } from '../state/runs.ts'
import { source } from '../state/source.ts'
import { Seqs } from '../ui/seqs.tsx'
import { useSending } from '../ui/sending.ts'
import { formatTime, shortenId, showHidden } from '../ui/text.tsx'
import { Trouble } from '../ui/trouble.tsx'
import type { Standing, StandingElsewhere } from '../worker/standing.ts'
import { TextCommand } from './actions/text-command.tsx'

/** Approvals that let later calls run, each with those calls, and a way to end it. */
export function StandingApprovals({ list }: { readonly list: readonly Standing[] }): JSX.Element | null {
  if (list.length === 0) return null
  return (
    <section class="section">
      <h3>{list.length === 1 ? 'Approval that stands' : 'Approvals that stand'}</h3>
      <ul class="standing">
        {list.map((each) => (
          <One key={each.id} standing={each} />
        ))}
      </ul>
    </section>
  )
}

/** The newest runs of a session that are looked into. */
const maxRuns = 60

const scopes: Readonly<Record<Standing['scope'], string>> = {
  session: 'all calls of the tool',
  equal_input: 'calls with an equal input',
}

function One({ standing }: { readonly standing: Standing }): JSX.Element {
  const { id, name, by, roles = [], scope, seq, isCarried, applied } = standing
  const [isOpen, setOpen] = useState(false)
  const [answer, setAnswer] = useState<string | undefined>(undefined)
  const [elsewhere, setElsewhere] = useState<readonly StandingElsewhere[] | undefined>(undefined)
  const { isBusy, trouble, send } = useSending()
  const { isDone = true, sessionId } = waits.value ?? {}
  const lookElsewhere = (): void =>
    send(
      async () => {
        const { runs } = await source.value.listRuns({ sessionId: sessionId!, limit: maxRuns })
        const others = runs.filter((row) => row.runId !== runId.value)
        return await worker.readStandingIn(
          id,
          others.map((row) => [row.runId, source.value.locateRun(row.runId)]),
        )
      },
      (found) => {
        setElsewhere(found)
        const end = found.find(({ withdrawn }) => withdrawn)
        if (end) setAnswer(`withdrawn by ${end.withdrawn?.by ?? '?'} in run ${shortenId(end.runId)}`)
      },
    )
  const holds = standing.withdrawn === undefined && answer === undefined && Date.now() < standing.expiresAt
  const place = isDone ? `sessions/${encodeURIComponent(sessionId ?? '')}` : `runs/${runId.value}`
  return (
    <li>
      <p>
        <b>{showHidden(name)}</b>: {scopes[scope]}, approved by <b>{showHidden(by)}</b>
        {roles.length > 0 && ` (${showHidden(roles.join(', '))})`}
        {isCarried && ' in an earlier run of the session'} <Seqs seqs={[seq]} />
      </p>
      <div class="how-long">
        <End standing={standing} {...(answer !== undefined && { answer })} />
        {holds && may('withdraw') && !(isDone && sessionId === undefined) && (
          <button type="button" onClick={() => setOpen(true)}>
            Withdraw…
          </button>
        )}
      </div>
      <LetThrough run={runId.value} where="this run" applied={applied} />
      {elsewhere?.map((each) => (
        <LetThrough key={each.runId} run={each.runId} where={`run ${shortenId(each.runId)}`} {...each} />
      ))}
      {elsewhere?.length === 0 && <p class="soft">It held in no other run of the session.</p>}
      <Trouble words={trouble} />
      {sessionId !== undefined && elsewhere === undefined && (
        <button type="button" class="quiet" disabled={isBusy} onClick={lookElsewhere}>
          Look into the other runs of the session
        </button>
      )}
      {isOpen && (
        <TextCommand
          title={`Withdraw the approval of ${showHidden(name)}`}
          label="Reason"
          hint="Later calls are asked about again. Those that it let through stay as they are."
          action="Withdraw"
          mayBeEmpty
          path={`${place}/withdraw`}
          toBody={(reason) => ({ standing: id, ...(reason !== '' && { reason }) })}
          then={(given) =>
            setAnswer(
              (given as { readonly withdrawn?: boolean }).withdrawn === false
                ? 'It did not hold any more.'
                : isDone
                  ? 'withdrawn, in a new run of the session'
                  : undefined,
            )
          }
          onClose={() => setOpen(false)}
        />
      )}
    </li>
  )
}

/** The calls of a run that it let through. */
function LetThrough({
  run,
  where,
  applied,
}: Pick<Standing, 'applied'> & {
  readonly run: string | undefined
  readonly where: string
}): JSX.Element {
  return (
    <p class="soft">
      {applied.length === 0 ? `It let no call of ${where} through.` : `It let through in ${where}:`}
      {applied.map(({ toolCallId }) => (
        <button
          key={toolCallId}
          type="button"
          class="quiet"
          title={toolCallId}
          onClick={() =>
            go({ call: toolCallId, middle: 'call', ...(run !== runId.value && { run, at: undefined }) })
          }
        >
          <code>{shortenId(toolCallId)}</code>
        </button>
      ))}
    </p>
  )
}

function End({
  standing: { withdrawn, expiresAt },
  answer,
}: {
  readonly standing: Standing
  readonly answer?: string
}): JSX.Element {
  const { isDone = true, sessionId } = waits.value ?? {}
  if (answer !== undefined) return <span class="badge">✕ {showHidden(answer)}</span>
  if (withdrawn) {
    const { by, reason, seq } = withdrawn
    return (
      <>
        <span class="badge bad">✕ withdrawn</span>
        <span>
          {by !== undefined && `by ${showHidden(by)}`}
          {reason !== undefined && `: ${showHidden(reason)}`}
        </span>
        <Seqs seqs={[seq]} />
      </>
    )
  }
  if (Date.now() >= expiresAt) return <span class="badge">✕ ended {formatTime(expiresAt)}</span>
  if (isDone && sessionId === undefined) return <span class="badge">✕ ended with the run</span>
  return (
    <>
      <span class="badge good">✓ until {formatTime(expiresAt)}</span>
      {isDone && <span class="soft">unless a later run of the session has ended it</span>}
    </>
  )
}
