import { proxy } from 'comlink'
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Verification } from '../../api.ts'
import { goTo, lastSeq, worker } from '../state/open-run.ts'
import { runId } from '../state/route.ts'
import { may, self } from '../state/runs.ts'
import { source } from '../state/source.ts'
import { useRead } from '../state/use-read.ts'
import { Same } from '../ui/same.tsx'
import { formatTime, showHidden } from '../ui/text.tsx'
import type { Ranges, Trust } from '../worker/trust.ts'

/** What can be trusted: hashes, rows and laws as this page itself checks them, and what the server says beside it. */
export function TrustView(): JSX.Element {
  const open = runId.value
  const [trust, setTrust] = useState<Trust>()
  const [trouble, setTrouble] = useState<string>()
  const isKnown = lastSeq.value > 0
  useEffect(() => {
    setTrust(undefined)
    setTrouble(undefined)
    if (!isKnown) return undefined
    let isGone = false
    worker
      .verify(proxy((found) => !isGone && setTrust(found)))
      .catch((error: Error) => !isGone && setTrouble(error.message))
    return () => {
      isGone = true
      void worker.stopVerifying()
    }
  }, [open, isKnown])
  return (
    <div class="facts">
      <section class="section">
        <h3>Checked in this page</h3>
        {trust && <Verdict trust={trust} />}
        {trouble !== undefined && (
          <p class="notice wait" role="alert">
            The record cannot be checked here: {showHidden(trouble)}
          </p>
        )}
        {trust === undefined && trouble === undefined && <p class="soft">Reading …</p>}
      </section>
      {trust && <Content trust={trust} />}
      {source.value.kind === 'server' && <ServerSays />}
      <Same
        command={['verify', 'LEDGER', '--run', open ?? '']}
        path={`runs/${open}/verify`}
        json={() => trust ?? {}}
        markdown={() => (trust ? toMarkdown(open ?? '', trust) : '')}
      />
    </div>
  )
}

function Verdict({ trust }: { readonly trust: Trust }): JSX.Element {
  const { verified, of, isDone, fault, lastHash, epochs, lawsOnly } = trust
  return (
    <>
      <p role="status">
        {fault ? (
          <span class="badge bad">✕ not as written at event {fault.seq}</span>
        ) : (
          <span class={`badge ${isDone ? 'good' : 'live'}`}>
            {isDone ? '✓' : '●'} {lawsOnly === undefined ? 'verified' : 'laws hold'} to event{' '}
            {verified.toLocaleString()} of {of.toLocaleString()}
          </span>
        )}
      </p>
      {!isDone && <progress value={verified} max={of} aria-label="Events verified" />}
      {fault && (
        <div class="notice bad">
          <p>
            The <b>{showHidden(fault.what)}</b> is not what it has to be. Events 1 to{' '}
            {verified.toLocaleString()} are sound; what follows cannot be trusted.{' '}
            <button type="button" class="quiet" onClick={() => goTo(fault.seq)}>
              Go to event {fault.seq}
            </button>
          </p>
          <dl class="pairs">
            <dt>expected</dt>
            <dd>
              <code>{showHidden(fault.expected)}</code>
            </dd>
            <dt>found</dt>
            <dd>
              <code>{showHidden(fault.found)}</code>
            </dd>
          </dl>
        </div>
      )}
      {lawsOnly !== undefined && (
        <p class="notice wait">The chain of hashes cannot be checked here. {showHidden(lawsOnly)}</p>
      )}
      {fault === undefined && (
        <ul class="checks">
          {lawsOnly === undefined && (
            <>
              <li>The chain of hashes was computed again from the rows of the ledger.</li>
              <li>Each row was compared with the event that is shown.</li>
            </>
          )}
          <li>
            The laws of the machine hold over these events: budgets, digests of requests and inputs, order.
          </li>
        </ul>
      )}
      <p class="soft">
        {epochs > 1 && `Written in ${epochs} epochs, one for each process that drove the run. `}
        {lastHash !== undefined && (
          <>
            Hash of the last one: <code>{lastHash}</code>
          </>
        )}
      </p>
      <p class="soft">
        Someone who may write the ledger can compute a whole chain anew. Only a checkpoint that was signed and
        kept elsewhere shows that.
      </p>
    </>
  )
}

const kinds: Readonly<Record<string, string>> = {
  redacted: 'Redacted',
  expired: 'Removed by a rule of retention',
  erased: 'Erased with the key of its subject',
  sealed: 'Encrypted, and the reader has no key',
}

/** Content that is not there, or not as it was written, as what it is. */
function Content({ trust: { removed, sealed } }: { readonly trust: Trust }): JSX.Element {
  const { value: carried = 0 } = useRead(`${runId.value} ${lastSeq.value > 0}`, () => worker.readCarried())
  const isWhole = removed.length + sealed.length === 0
  return (
    <section class="section">
      <h3>Content</h3>
      {isWhole && <p>All content is here, as it was written.</p>}
      {removed.map(({ kind, by, at, reason, events }) => (
        <p key={JSON.stringify([kind, by, at, reason])}>
          <span class="badge wait">▧ {kinds[kind] ?? kind}</span> events <EventRanges ranges={events} />
          <span class="soft">
            {by !== undefined && ` by ${showHidden(by)}`}
            {at !== undefined && `, ${formatTime(at)}`}
            {reason !== undefined && `: ${showHidden(reason)}`}
          </span>
        </p>
      ))}
      {sealed.length > 0 && (
        <p>
          <span class="badge wait">▧ Sealed</span> events <EventRanges ranges={sealed} />
          <span class="soft">
            : their rows are encrypted for the subject of the run. The chain covers them; of what is shown,
            this page compared the facts beside the content.
          </span>
        </p>
      )}
      {self.value?.isImported && (
        <p>
          <span class="badge">↧ Imported</span>
          <span class="soft">
            {' '}
            This is what an export says. Whether it is what was written, only the ledger that recorded it
            shows, with its checkpoints.
          </span>
        </p>
      )}
      {carried > 0 && (
        <p>
          <span class="badge">↧ Carried over</span>
          <span class="soft">
            {' '}
            {carried} messages were recorded before this run, and it begins with them.
          </span>
        </p>
      )}
    </section>
  )
}

function EventRanges({ ranges }: { readonly ranges: Ranges }): JSX.Element {
  return (
    <span class="seqs">
      {ranges.slice(0, 12).map(([from, to]) => (
        <button type="button" class="quiet" key={from} onClick={() => goTo(from)}>
          {from === to ? from : `${from}–${to}`}
        </button>
      ))}
      {ranges.length > 12 && <span class="faint">… {ranges.length - 12} more</span>}
    </span>
  )
}

/** The verdict of the server, and up to where signed checkpoints cover the run. */
function ServerSays(): JSX.Element {
  const open = runId.value
  const { value, error } = useRead(`${open} ${lastSeq.value}`, () =>
    source.value.read<Verification>(`runs/${open}/verify`),
  )
  const { signed } = value ?? {}
  return (
    <section class="section">
      <h3>Checked by the server</h3>
      {error !== undefined && <p class="soft">It does not say: {showHidden(error)}</p>}
      {value && (
        <p>
          <span class={`badge ${value.ok ? 'good' : 'bad'}`}>
            {value.ok
              ? `✓ sound to event ${value.events}`
              : `✕ ${showHidden(value.broken?.what ?? 'not sound')}`}
          </span>
          {!value.ok && value.broken && <span class="soft"> at event {value.broken.seq}</span>}
        </p>
      )}
      {value?.imported && (
        <p>
          <span class="badge">↧ Imported</span>
          <span class="soft">
            {' '}
            by {showHidden(value.imported.by)}, {formatTime(value.imported.at)}
            {value.imported.reason !== undefined && `, ${showHidden(value.imported.reason)}`}. The chain is
            that of this ledger, not of the one that recorded the run.
          </span>
        </p>
      )}
      {value &&
        signed === undefined &&
        (may('inspect') ? (
          <Unsigned />
        ) : (
          <p class="soft">Who may inspect is told up to which event it is signed.</p>
        ))}
      {signed && (
        <p>
          <span class={`badge ${signed.broken ? 'bad' : signed.seq > 0 ? 'good' : 'wait'}`}>
            {signed.broken
              ? `✕ ${signed.broken.seq === undefined ? 'the checkpoints cannot be trusted' : `not as signed at event ${signed.broken.seq}`}`
              : signed.seq > 0
                ? `✎ signed to event ${signed.seq} of ${value?.events}`
                : '○ not signed yet'}
          </span>
          <span class="soft">
            {signed.broken
              ? ` ${showHidden(`${signed.broken.what} should be ${signed.broken.expected}, is ${signed.broken.found}`)}`
              : ` by ${showHidden(signed.origin)}, whose checkpoints are kept outside the ledger`}
          </span>
        </p>
      )}
    </section>
  )
}

const signingCommands = `tallystick checkpoint LEDGER --out CHECKPOINTS --key PRIVATE.pem --origin NAME
tallystick inspect LEDGER --checkpoints CHECKPOINTS --public-key PUBLIC.pem`

/** How to have a ledger signed, and to see here up to where it is. */
function Unsigned(): JSX.Element {
  return (
    <>
      <p class="soft">
        Signed: not known, since the server was given no checkpoints. To sign, and to see it here:
      </p>
      <div class="text">
        <pre>{signingCommands}</pre>
      </div>
    </>
  )
}

function toMarkdown(id: string, { verified, of, fault, removed, sealed }: Trust): string {
  const format = (ranges: Ranges): string =>
    ranges.map(([from, to]) => (from === to ? from : `${from}–${to}`)).join(', ')
  return [
    `Run ${id}: ${fault ? `not as written at event ${fault.seq} (${fault.what})` : `verified to event ${verified} of ${of}`}.`,
    ...removed.map(
      ({ kind, by, events }) => `- ${kind}${by === undefined ? '' : ` by ${by}`}: events ${format(events)}`,
    ),
    ...(sealed.length > 0 ? [`- sealed: events ${format(sealed)}`] : []),
  ].join('\n')
}
