import { defineAgent, handoff, joinText } from '@tallystick/core'
import { callsTools, employer, helper, look, manager, saying, undeclared } from './crash-agents.ts'
import { byTurn, inSmallPieces, stagedModel, stagedTool } from './crash-effects.ts'
import { asking, runAt, runsOf, type Scenario, type Step } from './crash-user.ts'

const answered = (text: RegExp): Scenario['ends'] => ({ '': [{ reason: 'answered', text }] })

const answer: Scenario = {
  name: 'answer',
  agent: (stage) =>
    defineAgent({
      name: 'speaker',
      instructions: 'Answer.',
      model: stagedModel(stage, byTurn([{ reasoning: 'Let me think.', ...saying('All is well here.') }])),
    }),
  steps: [asking('How are you?')],
  ends: answered(/^All is well here\.$/),
}

const words = Array.from({ length: 120 }, (_, index) => `word${index}`).join(' ')

/** Replies of many pieces, which share rows and pages: text, reasoning, and the input of a call. */
const essay: Scenario = {
  name: 'essay',
  agent: (stage) =>
    defineAgent({
      name: 'writer',
      instructions: 'Write.',
      tools: [undeclared(stage, 'print')],
      model: inSmallPieces(
        stagedModel(
          stage,
          byTurn([
            { ...saying(words), reasoning: words, toolCalls: [{ name: 'print', input: { text: words } }] },
            saying(words),
          ]),
        ),
      ),
    }),
  steps: [asking('Write much, and print it.')],
  ends: answered(/^word0 .* word119$/),
}

const reads: Scenario = {
  name: 'reads',
  agent: (stage) =>
    defineAgent({
      name: 'reader',
      instructions: 'Look.',
      tools: [look(stage)],
      model: stagedModel(stage, byTurn([callsTools('look', 'look', 'look'), saying('I have looked.')])),
    }),
  steps: [asking('Look three times.')],
  ends: answered(/^I have looked\.$/),
}

const writes: Scenario = {
  name: 'writes',
  agent: (stage) =>
    defineAgent({
      name: 'payer',
      instructions: 'Pay.',
      tools: [look(stage), undeclared(stage, 'pay'), undeclared(stage, 'ship')],
      model: stagedModel(
        stage,
        byTurn([callsTools('look', 'pay', 'ship'), callsTools('pay'), saying('Paid and shipped.')]),
      ),
    }),
  steps: [asking('Pay, and ship it.')],
  ends: answered(/^Paid and shipped\.$/),
}

const rerun: Scenario = {
  name: 'rerun',
  agent: (stage) =>
    defineAgent({
      name: 'publisher',
      instructions: 'Publish.',
      tools: [stagedTool(stage, { name: 'publish', effect: 'write', recovery: 'rerun' })],
      model: stagedModel(stage, byTurn([callsTools('publish', 'publish'), saying('Published.')])),
    }),
  steps: [asking('Publish both.')],
  ends: answered(/^Published\.$/),
}

const reconcile: Scenario = {
  name: 'reconcile',
  agent(stage) {
    const charge = stagedTool(stage, {
      name: 'charge',
      effect: 'write',
      recovery: 'reconcile',
      reconcile: async ({ idempotencyKey }) =>
        stage.world.hasDone(idempotencyKey)
          ? { state: 'done', outcome: 'success', content: [{ type: 'text', text: 'It was charged.' }] }
          : { state: 'not_done' },
    })
    return defineAgent({
      name: 'cashier',
      instructions: 'Charge.',
      tools: [charge],
      model: stagedModel(stage, byTurn([callsTools('charge', 'charge'), saying('Charged.')])),
    })
  },
  steps: [asking('Charge both.')],
  ends: answered(/^Charged\.$/),
}

const session: Scenario = {
  name: 'session',
  agent: (stage) =>
    defineAgent({
      name: 'companion',
      instructions: 'Talk.',
      tools: [undeclared(stage, 'pay')],
      model: stagedModel(stage, byTurn([saying('Good morning.'), callsTools('pay'), saying('It is paid.')])),
    }),
  steps: [asking('Good morning!'), asking('Now pay.', 1)],
  ends: {
    '': [
      { reason: 'answered', text: /^Good morning\.$/ },
      { reason: 'answered', text: /^It is paid\.$/ },
    ],
  },
}

const handedOver: Scenario = {
  name: 'handoff',
  agent(stage) {
    const second = defineAgent({
      name: 'second',
      description: 'Pays.',
      instructions: 'Pay.',
      tools: [undeclared(stage, 'pay')],
      model: stagedModel(stage, byTurn([{}, callsTools('pay'), saying('Paid by the second.')])),
    })
    return defineAgent({
      name: 'first',
      instructions: 'Hand over.',
      handoffs: [handoff(second)],
      model: stagedModel(stage, byTurn([{ toolCalls: [{ name: 'transfer_to_second', input: {} }] }])),
    })
  },
  steps: [asking('Let somebody pay.')],
  ends: answered(/^Paid by the second\.$/),
}

const child: Scenario = {
  name: 'child',
  agent: (stage) => employer(stage, helper(stage, undeclared(stage, 'pay'))),
  steps: [asking('Let the helper pay.')],
  ends: answered(/^I was helped\.$/),
}

const shared: Scenario = {
  name: 'shared limits',
  agent: (stage) => manager(stage, helper(stage, undeclared(stage, 'pay'))),
  steps: [asking('Let both pay.')],
  ends: answered(/^All was done\.$/),
}

const limit: Scenario = {
  name: 'limit',
  agent: (stage) =>
    defineAgent({
      name: 'digger',
      instructions: 'Dig.',
      tools: [undeclared(stage, 'dig')],
      limits: { maxTurns: 3, onLimit: 'finalize' },
      model: stagedModel(stage, ({ toolChoice, messages }) =>
        toolChoice.type === 'none'
          ? saying('This is how far I came.')
          : { toolCalls: [{ name: 'dig', input: { depth: messages.length } }] },
      ),
    }),
  steps: [asking('Dig on.')],
  ends: { '': [{ reason: 'turn_limit', text: /^This is how far I came\.$/ }] },
}

/** A fork of the session's first run at the end of its first turn, in which something else was asked. */
const forking: Step = async (user) => {
  const { ledger, runtime } = user
  const [source] = await runsOf(user)
  if (source === undefined) throw new Error('There is no run to fork.')
  const events = await Array.fromAsync(ledger.read(source))
  const atSeq = events.find(({ type }) => type === 'tool_results_injected')?.seq ?? 0
  const edit = { input: 'Look, pay and ship.', by: 'ada' }
  const sessionId = `${user.session} fork`
  const run = await runAt(
    user,
    0,
    () => runtime.fork(source, { atSeq, sessionId, edit, writes: 'run' }),
    ' fork',
  )
  return await run.result
}

const fork: Scenario = {
  name: 'fork',
  agent: (stage) =>
    defineAgent({
      name: 'walker',
      instructions: 'Walk.',
      tools: [look(stage), undeclared(stage, 'pay'), undeclared(stage, 'ship')],
      model: stagedModel(stage, (request) => {
        const [first] = request.messages
        const ships = first?.role === 'user' && joinText(first.parts).includes('ship')
        const end = ships ? [callsTools('ship'), saying('Shipped in the fork.')] : [saying('Paid.')]
        return byTurn([callsTools('look'), callsTools('pay'), ...end])(request)
      }),
    }),
  steps: [asking('Look and pay.'), forking],
  ends: {
    '': [{ reason: 'answered', text: /^Paid\.$/ }],
    ' fork': [{ reason: 'answered', text: /^Shipped in the fork\.$/ }],
  },
}

/** Runs that no user interferes with. */
export const workScenarios: readonly Scenario[] = [
  answer,
  essay,
  reads,
  writes,
  rerun,
  reconcile,
  session,
  handedOver,
  child,
  shared,
  limit,
  fork,
]
