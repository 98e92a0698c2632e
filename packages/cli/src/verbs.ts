import type { Command } from '@commander-js/extra-typings'
import type { CommandContext } from './command/context.ts'
import type { ExitCode } from './command/exit-code.ts'

/** Receives the exit code of the verb that was called. */
export type Done = (code: ExitCode) => void

/** Adds the arguments, options and action of a verb; a description where the summary does not say enough. */
export type DeclareVerb = (verb: Command, context: CommandContext, done: Done) => void

/** A verb as the help and the completion list it. Its module is loaded when the verb is named. */
export interface ListedVerb {
  readonly summary: string
  /** One call, as a user would type it: the help of the verb ends with it. */
  readonly example: string
  readonly load: () => Promise<DeclareVerb>
}

/** Every verb by its name, under the heading that the help gives it. */
export const verbGroups: Readonly<Record<string, Readonly<Record<string, ListedVerb>>>> = {
  'Drive runs:': {
    dev: {
      summary: 'work on your agents: start runs in a page, and look into them',
      example: 'tallystick dev runs.db',
      load: async () => (await import('./verbs/dev.ts')).declareDev,
    },
    run: {
      summary: 'start a run of one of your agents, and show it live',
      example: `tallystick run runs.db assistant 'How warm is it in Seoul?' --session ann`,
      load: async () => (await import('./verbs/run.ts')).declareRun,
    },
    resume: {
      summary: 'continue a run: after a decision, a stop or a crash',
      example: 'tallystick resume runs.db latest --yes --by ann',
      load: async () => (await import('./verbs/resume.ts')).declareResume,
    },
    fork: {
      summary: 'start a run that shares the first events of another',
      example: `tallystick fork runs.db latest --input 'Order two.' --reason 'what if'`,
      load: async () => (await import('./verbs/fork.ts')).declareFork,
    },
    serve: {
      summary: 'serve runs over HTTP, and resume those that no process drives',
      example: 'tallystick serve runs.db --port 8080',
      load: async () => (await import('./verbs/serve.ts')).declareServe,
    },
  },
  'Look at runs:': {
    list: {
      summary: 'list the runs, the newest first',
      example: 'tallystick list runs.db --status suspended --since 3d',
      load: async () => (await import('./verbs/list.ts')).declareList,
    },
    show: {
      summary: 'show the state of a run, and what happened in it',
      example: 'tallystick show runs.db latest --at 12',
      load: async () => (await import('./verbs/show.ts')).declareShow,
    },
    find: {
      summary: 'find calls and messages in all runs',
      example: 'tallystick find runs.db --tool pay --outcome success --input usd=5',
      load: async () => (await import('./verbs/find.ts')).declareFind,
    },
    schedules: {
      summary: 'list the schedules that start runs by time, and pause them',
      example: 'tallystick schedules runs.db',
      load: async () => (await import('./verbs/schedules.ts')).declareSchedules,
    },
    inspect: {
      summary: 'open a page that shows every run at any moment',
      example: 'tallystick inspect runs.db --allow decisions',
      load: async () => (await import('./verbs/inspect.ts')).declareInspect,
    },
    explain: {
      summary: 'show where the request of a turn came from, part by part',
      example: 'tallystick explain runs.db latest 2',
      load: async () => (await import('./verbs/explain.ts')).declareExplain,
    },
  },
  'Follow and compare runs:': {
    tail: {
      summary: 'follow a run live, or all of them, whichever process drives them',
      example: 'tallystick tail runs.db latest',
      load: async () => (await import('./verbs/tail.ts')).declareTail,
    },
    stats: {
      summary: 'show which runs wait, which failed and why, and what they cost',
      example: 'tallystick stats runs.db --days 30 --by day',
      load: async () => (await import('./verbs/stats.ts')).declareStats,
    },
    diff: {
      summary: 'show where two runs part, side by side',
      example: 'tallystick diff runs.db latest 5f2c91',
      load: async () => (await import('./verbs/diff.ts')).declareDiff,
    },
  },
  'Decide what runs wait for:': {
    approve: {
      summary: 'approve a tool call that waits for an approval',
      example: `tallystick approve runs.db latest 2_1_1 --by ann --input '{"quantity":12}'`,
      load: async () => (await import('./verbs/decide.ts')).declareApprove,
    },
    deny: {
      summary: 'deny a tool call that waits for an approval',
      example: `tallystick deny runs.db latest 2_1_1 --by ann --reason 'twelve are enough'`,
      load: async () => (await import('./verbs/decide.ts')).declareDeny,
    },
    withdraw: {
      summary: 'end an approval that also covers later calls',
      example: `tallystick withdraw runs.db latest 2_1_1 --by ann --reason 'the price went up'`,
      load: async () => (await import('./verbs/decide.ts')).declareWithdraw,
    },
    settle: {
      summary: 'give the result of a tool call that an outside system carries out',
      example: `tallystick settle runs.db latest job-7 --result '12 rows'`,
      load: async () => (await import('./verbs/decide.ts')).declareSettle,
    },
    raise: {
      summary: 'raise a limit of a run, such as one that it is suspended at',
      example: 'tallystick raise runs.db latest maxTurns 40 --by ann',
      load: async () => (await import('./verbs/decide.ts')).declareRaise,
    },
    feedback: {
      summary: 'say what you think of a run that has ended: a score, a note, or both',
      example: `tallystick feedback runs.db latest --score 0 --note 'the wrong order' --by ann`,
      load: async () => (await import('./verbs/decide.ts')).declareFeedback,
    },
    cancel: {
      summary: 'ask a run to stop',
      example: `tallystick cancel runs.db latest --reason 'the shop is closed'`,
      load: async () => (await import('./verbs/decide.ts')).declareCancel,
    },
  },
  'Check runs, agents and stores:': {
    verify: {
      summary: 'check the chain and the laws of every run',
      example: 'tallystick verify runs.db --checkpoints checkpoints --public-key key.pub',
      load: async () => (await import('./verbs/verify.ts')).declareVerify,
    },
    checkpoint: {
      summary: 'sign where every run ends now',
      example: 'tallystick checkpoint runs.db --out checkpoints --key key.pem --origin example.com/agents',
      load: async () => (await import('./verbs/verify.ts')).declareCheckpoint,
    },
    replay: {
      summary: 'drive a run again from its record, and report where it differs',
      example: 'tallystick replay runs.db latest',
      load: async () => (await import('./verbs/replay.ts')).declareReplay,
    },
    regression: {
      summary: 'write a run as a test that vitest runs offline',
      example: 'tallystick regression runs.db latest --out test/refund.spec.ts',
      load: async () => (await import('./verbs/replay.ts')).declareRegression,
    },
    dataset: {
      summary: 'print runs as cases for an evaluation',
      example: `tallystick dataset runs.db --where 'agent=assistant' > cases.jsonl`,
      load: async () => (await import('./verbs/evaluate.ts')).declareDataset,
    },
    evaluate: {
      summary: 'run cases with your agents, and compare scores, costs and calls',
      example: 'tallystick evaluate evals.db evaluation.ts --min 0.8',
      load: async () => (await import('./verbs/evaluate.ts')).declareEvaluate,
    },
    policy: {
      summary: 'check approval rules: their examples, and what they decide about calls on record',
      example: 'tallystick policy check rules.json runs.db',
      load: async () => (await import('./verbs/policy.ts')).declarePolicy,
    },
    contract: {
      summary: 'test whether a store of your own keeps the promises of a ledger',
      example: 'tallystick contract ./my-store.ts',
      load: async () => (await import('./verbs/contract.ts')).declareContract,
    },
  },
  'Move and repair ledgers:': {
    export: {
      summary: 'print the events, one JSON object per line',
      example: 'tallystick export runs.db --run latest > run.jsonl',
      load: async () => (await import('./verbs/transfer.ts')).declareExport,
    },
    import: {
      summary: 'read an export into a ledger',
      example: 'tallystick import copy.db run.jsonl',
      load: async () => (await import('./verbs/transfer.ts')).declareImport,
    },
    rebuild: {
      summary: 'rebuild projections and snapshots from the events',
      example: 'tallystick rebuild runs.db',
      load: async () => (await import('./verbs/transfer.ts')).declareRebuild,
    },
  },
  'Remove content:': {
    redact: {
      summary: 'remove the content of events',
      example: `tallystick redact runs.db latest --events 2,7-9 --reason 'ticket 4711'`,
      load: async () => (await import('./verbs/retention.ts')).declareRedact,
    },
    erase: {
      summary: 'destroy the keys of a subject',
      example: 'tallystick erase keys.db customer-7',
      load: async () => (await import('./verbs/retention.ts')).declareErase,
    },
    retain: {
      summary: 'remove content that is older than given ages',
      example: 'tallystick retain runs.db --deltas 1d --content 90d --facts 2y',
      load: async () => (await import('./verbs/retention.ts')).declareRetain,
    },
  },
  'Other:': {
    mcp: {
      summary: 'list the tools of MCP servers, call one, find what is wrong',
      example: 'tallystick mcp doctor claude_desktop_config.json',
      load: async () => (await import('./verbs/mcp.ts')).declareMcp,
    },
  },
}

/** The shells with a completion script. */
export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** The hidden verb by which a shell asks for the runs of a ledger. */
export const runsVerb = 'complete-runs'
