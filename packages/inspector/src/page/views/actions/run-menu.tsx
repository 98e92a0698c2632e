import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { RegressionFiles, ReplayAnswer } from '../../../api.ts'
import { mayCollect } from '../../state/cases.ts'
import { waits } from '../../state/open-run.ts'
import { route, runId } from '../../state/route.ts'
import { may, rows, self } from '../../state/runs.ts'
import { source } from '../../state/source.ts'
import { Dialog, DialogEnd } from '../../ui/dialog.tsx'
import { fence } from '../../ui/fence.ts'
import { Same } from '../../ui/same.tsx'
import { useSending } from '../../ui/sending.ts'
import { showHidden } from '../../ui/text.tsx'
import { Trouble } from '../../ui/trouble.tsx'
import { ReplayReport } from '../replay-report.tsx'
import { DatasetDialog } from './dataset-dialog.tsx'
import { FeedbackDialog } from './feedback-dialog.tsx'
import { ForkDialog } from './fork-dialog.tsx'
import { TextCommand } from './text-command.tsx'

type Open = 'case' | 'fork' | 'steer' | 'queue' | 'cancel' | 'resume' | 'replay' | 'feedback' | 'test'

/** The commands that take a text. */
const textCommands = {
  steer: {
    ...{ title: 'Steer the run', label: 'Message', hint: 'The model reads it at its next turn.' },
    action: 'Send',
    toBody: (input: string) => ({ input }),
  },
  queue: {
    ...{ title: 'Queue a message', label: 'Message', hint: 'The model reads it once it has answered.' },
    action: 'Send',
    toBody: (input: string) => ({ input }),
  },
  cancel: {
    ...{ title: 'Cancel the run', label: 'Reason', action: 'Cancel the run', mayBeEmpty: true },
    hint: 'What is finished stays on record. Open calls get a result that says so.',
    toBody: (reason: string) => (reason === '' ? {} : { reason }),
  },
} as const

/** What the caller may do with the run: only that is offered. */
export function RunMenu(): JSX.Element | null {
  const [open, setOpen] = useState<Open | undefined>(undefined)
  const now = waits.value
  if (source.value.kind === 'file' || now === undefined) return null
  const run = runId.value
  const status = rows.value.find((row) => row.runId === run)?.status
  const offered: readonly (readonly [Open, string, boolean])[] = [
    [
      'fork',
      route.value.at === undefined ? 'Fork…' : `Fork at ${route.value.at}…`,
      may('fork') && hasAgents(),
    ],
    ['steer', 'Steer…', !now.isDone && may('steer')],
    ['queue', 'Queue…', !now.isDone && may('queue')],
    ['resume', 'Resume…', status === 'interrupted' && may('resume')],
    ['cancel', 'Cancel…', !now.isDone && may('cancel')],
    ['feedback', 'Feedback…', now.isDone && may('feedback')],
    ['replay', 'Replay', may('replay') && hasAgents()],
    ['test', 'Copy as test', now.isDone && may('inspect')],
    ['case', 'As case…', now.isDone && mayCollect()],
  ]
  const close = (): void => setOpen(undefined)
  return (
    <div class="menu" role="group" aria-label="Actions">
      {offered.map(([verb, label, isOffered]) =>
        isOffered ? (
          <button key={verb} type="button" onClick={() => setOpen(verb)}>
            {label}
          </button>
        ) : null,
      )}
      {open === 'fork' && <ForkDialog onClose={close} />}
      {(open === 'steer' || open === 'queue' || open === 'cancel') && (
        <TextCommand {...textCommands[open]} path={`runs/${run}/${open}`} onClose={close} />
      )}
      {open === 'resume' && <ResumeDialog onClose={close} />}
      {open === 'replay' && <ReplayDialog onClose={close} />}
      {open === 'feedback' && <FeedbackDialog onClose={close} />}
      {open === 'test' && <TestDialog onClose={close} />}
      {open === 'case' && run !== undefined && <DatasetDialog choice={{ run: [run] }} onClose={close} />}
    </div>
  )
}

/** Whether the server knows agents that can go on with a run. */
function hasAgents(): boolean {
  return (self.value?.agents.length ?? 0) > 0
}

function ResumeDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const { isBusy, trouble, send } = useSending()
  return (
    <Dialog title="Resume the run" onClose={onClose}>
      <p>
        No process drives this run. The server takes it up where its record ends: calls in doubt are started
        again, asked about or reported, as their tools declare.
      </p>
      <DialogEnd
        trouble={trouble}
        action="Resume"
        disabled={isBusy}
        onClick={() => send(() => source.value.send(`runs/${runId.value}/resume`, {}), onClose)}
      />
    </Dialog>
  )
}

/** Drives the run again from its record, by today's code, and shows the first difference. Calls no model and no tool. */
function ReplayDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const [report, setReport] = useState<ReplayAnswer | undefined>(undefined)
  const { trouble, send } = useSending()
  useEffect(() => {
    send(() => source.value.send<ReplayAnswer>(`runs/${runId.value}/replay`, {}), setReport)
  }, [])
  return (
    <Dialog title="Replay" onClose={onClose}>
      {report === undefined && trouble === undefined && (
        <p class="soft">Driving the run again from its record…</p>
      )}
      <Trouble words={trouble} />
      {report !== undefined && <ReplayReport report={report} onGo={onClose} />}
    </Dialog>
  )
}

/** The run as a test for vitest: two files that belong beside the tests. Secrets are masked. */
function TestDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const [files, setFiles] = useState<RegressionFiles | undefined>(undefined)
  const { trouble, send } = useSending()
  useEffect(() => {
    send(() => source.value.read<RegressionFiles>(`runs/${runId.value}/regression`), setFiles)
  }, [])
  return (
    <Dialog title="Regression test" onClose={onClose}>
      <Trouble words={trouble} />
      {files === undefined && trouble === undefined && <p class="soft">Writing the test…</p>}
      {files && (
        <>
          <p>
            The test drives the run again offline, and fails at the first of {files.events} events that comes
            out otherwise. Keep the record beside it, as <code>{files.fixtureName}</code>.
          </p>
          <pre class="input">{showHidden(files.test)}</pre>
          <footer class="dialog-end">
            <button type="button" onClick={() => void navigator.clipboard.writeText(files.fixture)}>
              Copy the record
            </button>
            <button
              type="button"
              class="primary"
              onClick={() => void navigator.clipboard.writeText(files.test)}
            >
              Copy the test
            </button>
          </footer>
        </>
      )}
      <Same
        command={['regression', 'LEDGER', runId.value ?? '', '--out', 'test/run.spec.ts']}
        path={`runs/${runId.value}/regression`}
        json={() => files ?? {}}
        markdown={() => fence(files?.test ?? '')}
      />
    </Dialog>
  )
}
