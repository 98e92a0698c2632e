// A server over standard input and output, whose tools go wrong on demand.
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { faultyServer } from './faulty-tools.ts'

process.stderr.write(`started with ${process.env['API_TOKEN'] ?? 'no token'}\n`)
await faultyServer((output, text) => void process[output].write(text)).connect(new StdioServerTransport())
