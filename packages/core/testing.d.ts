// The names of @tallystick/testkit, which has to be installed beside this package: npm install --save-dev @tallystick/testkit
export * from '@tallystick/testkit'
export * from '@tallystick/testkit/contract'
