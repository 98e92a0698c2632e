import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { seq, worker } from '../../state/open-run.ts'
import { go, runId } from '../../state/route.ts'
import { source } from '../../state/source.ts'
import { Dialog, DialogEnd, Field } from '../../ui/dialog.tsx'
import { useSending } from '../../ui/sending.ts'
import type { ForkPlace } from '../../worker/fork-place.ts'

/** Begins a run that shares the events up to the one that is looked at, with changes. The run itself stays as it is. */
export function ForkDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const [atSeq] = useState(seq.value)
  const [place, setPlace] = useState<ForkPlace | undefined>(undefined)
  const [models, setModels] = useState<readonly string[]>([])
  useEffect(() => {
    void worker.readForkPlace(atSeq).then(setPlace)
    source.value
      .read<{ readonly agents: readonly { readonly model?: { readonly modelId: string } }[] }>('agents')
      .then(
        ({ agents }) =>
          setModels([...new Set(agents.flatMap(({ model }) => (model ? [model.modelId] : [])))]),
        () => undefined,
      )
  }, [])
  return (
    <Dialog title={`Fork at event ${atSeq}`} onClose={onClose}>
      {place === undefined ? (
        <p class="soft">Reading…</p>
      ) : place.fault === undefined ? (
        <ForkForm atSeq={atSeq} place={place} models={models} onClose={onClose} />
      ) : (
        <p class="notice">{place.fault}</p>
      )}
    </Dialog>
  )
}

function ForkForm({
  atSeq,
  place,
  models,
  onClose,
}: {
  readonly atSeq: number
  readonly place: ForkPlace
  readonly models: readonly string[]
  readonly onClose: () => void
}): JSX.Element {
  const [input, setInput] = useState(place.input ?? '')
  const [results, setResults] = useState<Readonly<Record<string, string>>>({})
  const [instructions, setInstructions] = useState(place.instructions)
  const [model, setModel] = useState(place.model)
  const [without, setWithout] = useState<ReadonlySet<string>>(new Set())
  const [isArmed, setArmed] = useState(false)
  const { isBusy, trouble, send } = useSending()
  const given = Object.entries(results).filter(([, content]) => content !== '')
  const body = {
    atSeq,
    writes: isArmed ? 'run' : 'stub',
    ...(place.input !== undefined && input !== place.input && { input }),
    ...(given.length > 0 && { results: given.map(([toolCallId, content]) => ({ toolCallId, content })) }),
    ...(instructions !== place.instructions && { instructions }),
    ...(model !== place.model && { model }),
    ...(without.size > 0 && { withoutTools: [...without] }),
  }
  const origin = runId.value
  const fork = (): void =>
    send(
      () => source.value.send<{ readonly runId: string }>(`runs/${origin}/fork`, body),
      ({ runId: run }) => {
        onClose()
        // Beside the original, as it comes.
        go({ run, at: undefined, call: undefined, with: origin, middle: 'pair' })
      },
    )
  return (
    <>
      {place.input !== undefined && (
        <Field label="The user's message">
          <textarea rows={3} value={input} onInput={(event) => setInput(event.currentTarget.value)} />
        </Field>
      )}
      {place.calls.map(({ toolCallId, name }) => (
        <Field key={toolCallId} label={`Result of ${name}`} hint="Left empty, the recorded result is served.">
          <textarea
            rows={2}
            value={results[toolCallId] ?? ''}
            onInput={(event) => setResults({ ...results, [toolCallId]: event.currentTarget.value })}
          />
        </Field>
      ))}
      <Field label={`Instructions of ${place.agent}`}>
        <textarea
          rows={4}
          value={instructions}
          onInput={(event) => setInstructions(event.currentTarget.value)}
        />
      </Field>
      <Field label="Model">
        <input list="models" value={model} onInput={(event) => setModel(event.currentTarget.value)} />
        <datalist id="models">
          {models.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      </Field>
      {place.tools.length > 0 && (
        <fieldset class="field">
          <legend class="label">Tools that it has</legend>
          {place.tools.map((name) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                checked={!without.has(name)}
                onChange={() => {
                  const next = new Set(without)
                  if (!next.delete(name)) next.add(name)
                  setWithout(next)
                }}
              />
              {name}
            </label>
          ))}
        </fieldset>
      )}
      <label class="check">
        <input type="checkbox" checked={isArmed} onChange={() => setArmed(!isArmed)} />
        Perform writes that have no recorded result
      </label>
      <p class="soft hint">
        {isArmed
          ? 'Writes take effect in the outside world, under new idempotency keys.'
          : 'Writes are stubbed: none is performed, and the model is told so. Recorded results are served while the calls are equal.'}
      </p>
      <DialogEnd trouble={trouble} action={isBusy ? 'Forking…' : 'Fork'} disabled={isBusy} onClick={fork} />
    </>
  )
}
