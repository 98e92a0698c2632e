/** @ts-ignore Where the package is not installed, what declarations take from it is `any`: the command line names these. */
export type * as client from '@modelcontextprotocol/client'
