import type { Command } from 'commander'
import { exampleOf, type Done } from '../../command/add-verb.ts'
import type { CommandContext } from '../../command/command-context.ts'
import { positiveNumber } from '../../command/parse-args.ts'
import type { ContractVerbOptions } from './contract.ts'

/** Adds the verb for those who build a ledger of their own. */
export function addContract(program: Command, context: CommandContext, done: Done): void {
  program
    .command('contract')
    .description('find out which promises of a ledger a store of your own keeps')
    .summary('find out which promises a store of your own keeps')
    .argument('<file>', 'module whose default export makes an empty store: () => ({ open, remove?, lacks? })')
    .option('--only <words>', 'promises that hold these words only')
    .option('--seconds <n>', 'how long a store may take for one promise (default: 30)', positiveNumber)
    .option('--json', 'print JSON; errors too, on stderr')
    .addHelpText('after', exampleOf('contract'))
    .action(async (module: string, options: Omit<ContractVerbOptions, 'module'>) => {
      const { contract } = await import('./contract.ts')
      done(await contract(context, { module, ...options }))
    })
}
