/** @ts-ignore Where the package is not installed, what declarations take from it is `any`: no entry shows it to users. */
export type * as driver from 'pg'
