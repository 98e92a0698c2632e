// Prints the ledgers of the worlds of some seeds, one event a line.
import { defineAgent } from '@tallystick/core'
import { toCanonicalJson } from '@tallystick/core/vocabulary'
import { scriptedModel, simulateFleet, testTool } from '@tallystick/testkit'

for (const seed of process.argv.slice(2)) {
  await simulateFleet({
    agents: (site, tools) => [
      defineAgent({
        name: 'clerk',
        instructions: 'Work.',
        tools,
        model: site.model(
          scriptedModel(
            Array.from(
              { length: 200 },
              () =>
                ({ messages }) =>
                  messages.length > 4
                    ? { text: 'Done.' }
                    : {
                        text: 'Then.',
                        toolCalls: [
                          { name: 'pay', input: {} },
                          { name: 'read', input: {} },
                        ],
                      },
            ),
          ),
        ),
      }),
    ],
    tools: () => [
      testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) }),
      testTool({ name: 'read' }),
    ],
    start: (_random, ordinal) => ({ agent: 'clerk', input: `Task ${ordinal}` }),
    from: Number(seed),
    seeds: 1,
    onEnd: ({ stores }) => {
      for (const { runs } of stores)
        for (const event of runs.flat()) console.log(toCanonicalJson(event as never))
    },
  })
}
