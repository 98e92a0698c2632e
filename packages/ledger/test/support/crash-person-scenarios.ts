import { defineAgent, type Run } from '@tallystick/core'
import { testTool } from '@tallystick/testkit'
import { callsTools, employer, helper, look, saying, undeclared } from './crash-agents.ts'
import { byTurn, stagedModel, stagedTool } from './crash-effects.ts'
import { askedRun, asking, whenSeen, type Scenario, type Step } from './crash-user.ts'

/** Answers whatever waits for a person in the session's first run, by its input; until nothing does any more. */
function deciding(approves: (ordinal: unknown) => boolean): Step {
  return async (user) => {
    const run = await askedRun(user, '')
    for (;;) {
      const { pendingApprovals: pending } = await run.result
      if (pending.length === 0) return
      for (const asked of pending) {
        await (approves(asked.input['ordinal'])
          ? run.approve(asked, { by: 'ada' })
          : run.deny(asked, { by: 'ada', reason: 'not today' }))
      }
    }
  }
}

const approval: Scenario = {
  name: 'approval',
  agent: (stage) =>
    defineAgent({
      name: 'clerk',
      instructions: 'Ask first.',
      tools: [
        look(stage),
        stagedTool(stage, { name: 'refund', effect: 'write', check: () => ({ kind: 'ask' }) }),
      ],
      model: stagedModel(stage, byTurn([callsTools('refund', 'look', 'refund'), saying('Decided.')])),
    }),
  steps: [asking('Refund both.'), deciding((ordinal) => ordinal === 0)],
  ends: { '': [{ reason: 'answered', text: /^Decided\.$/ }] },
}

const approvalBelow: Scenario = {
  name: 'child approval',
  agent: (stage) =>
    employer(
      stage,
      helper(stage, stagedTool(stage, { name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })),
    ),
  steps: [asking('Let the helper pay.'), deciding(() => true)],
  ends: { '': [{ reason: 'answered', text: /^I was helped\.$/ }] },
}

/** What is in doubt, a person decides about: she never has it started again. */
const askedAgain: Scenario = {
  name: 'ask',
  agent: (stage) =>
    defineAgent({
      name: 'banker',
      instructions: 'Wire.',
      tools: [stagedTool(stage, { name: 'wire', effect: 'write', recovery: 'ask' })],
      model: stagedModel(stage, byTurn([callsTools('wire', 'wire'), saying('Wired.')])),
    }),
  steps: [asking('Wire both.'), deciding(() => false)],
  ends: { '': [{ reason: 'answered', text: /^Wired\.$/ }] },
}

/** Tells the run two things when its first tool has started; a user who was cut off does not say them again. */
const interrupting: Step = async (user) => {
  const run = await askedRun(user, 'Look around.')
  const say = async (name: string, send: () => Promise<unknown>): Promise<void> => {
    if (user.world.count('told', name) > 0) return
    user.world.note({ what: 'told', name })
    await send()
  }
  whenSeen(
    run,
    ({ type }) => type === 'tool_started',
    () =>
      Promise.all([
        say('steer', () => run.steer('Look to the left.')),
        say('queue', () => run.queue('And after you?')),
      ]),
  )
  await run.result
}

const steering: Scenario = {
  name: 'steer',
  agent: (stage) =>
    defineAgent({
      name: 'scout',
      instructions: 'Look.',
      tools: [look(stage), undeclared(stage, 'mark')],
      model: stagedModel(
        stage,
        // Each of the two things said may come in time for the first answer, or ask for one more.
        byTurn([callsTools('look', 'mark'), ...Array.from({ length: 3 }, () => saying('There is nothing.'))]),
      ),
    }),
  steps: [interrupting],
  ends: { '': [{ reason: 'answered', text: /^There is nothing\.$/ }] },
}

/** The call continues outside, and a user reports its end to whatever process is there then. */
const settling: Step = async (user) => {
  const run = await askedRun(user, '')
  const { deferredCalls } = await run.result
  for (const { toolCallId } of deferredCalls) {
    user.world.note({ what: 'done', name: 'send', toolCallId })
    await user.runtime.settle(run.id, toolCallId, 'Delivered.')
  }
  await user.runtime.resume(run.id).result
}

const deferred: Scenario = {
  name: 'deferred',
  agent(stage) {
    const send = testTool({
      name: 'send',
      effect: 'write',
      run(call, report) {
        stage.cross('send: before it executes')
        stage.world.noteCall('begun', 'send', call)
        stage.cross('send: in the middle')
        report.defer('parcel 7')
        stage.cross('send: deferred')
        return ''
      },
    })
    return defineAgent({
      name: 'sender',
      instructions: 'Send.',
      tools: [send, look(stage)],
      model: stagedModel(stage, byTurn([callsTools('send', 'look'), saying('Sent.')])),
    })
  },
  steps: [asking('Send it.'), settling],
  ends: { '': [{ reason: 'answered', text: /^Sent\.$/ }] },
}

function cancelWhenWorking(run: Run): void {
  whenSeen(
    run,
    ({ type }) => type === 'tool_started',
    () => run.cancel('It takes too long.'),
  )
}

const cancelled: Scenario = {
  name: 'cancel',
  agent(stage) {
    const dawdle = testTool({
      name: 'dawdle',
      effect: 'write',
      recovery: 'rerun',
      run(call) {
        stage.cross('dawdle: before it executes')
        stage.world.noteCall('begun', 'dawdle', call, { mayRepeat: true })
        stage.cross('dawdle: in the middle')
        return new Promise(() => undefined)
      },
    })
    return defineAgent({
      name: 'dawdler',
      instructions: 'Dawdle.',
      tools: [dawdle, look(stage)],
      model: stagedModel(stage, byTurn([{ text: 'At once.', ...callsTools('look', 'dawdle', 'look') }])),
    })
  },
  steps: [
    async (user) => {
      const run = await askedRun(user, 'Dawdle.')
      cancelWhenWorking(run)
      return await run.result
    },
  ],
  ends: { '': [{ reason: 'cancelled', text: /^At once\.$/ }] },
}

/** Runs that a user outside decides about, adds to, or stops. */
export const personScenarios: readonly Scenario[] = [
  approval,
  approvalBelow,
  askedAgain,
  steering,
  deferred,
  cancelled,
]
