// stompjs against the service: node client.cjs CERTIFICATE PORT TLS_PORT. 0 means success.

const fs = require('fs');
const { Client, Versions } = require('@stomp/stompjs');
const WebSocket = require('ws');

const [certificate, port, tlsPort] = process.argv.slice(2);
const ca = fs.readFileSync(certificate);
const PATIENCE = 30_000;

function talk(url, version) {
  return new Promise((done, fail) => {
    const late = setTimeout(() => fail(new Error(`${url} ${version}: nothing for too long`)), PATIENCE);
    let ticks = 0;
    const client = new Client({
      webSocketFactory: () => new WebSocket(url, version.protocolVersions(), { ca }),
      stompVersions: version,
      heartbeatIncoming: 1000,
      heartbeatOutgoing: 1000,
      reconnectDelay: 0,
      onStompError: (frame) => fail(new Error(frame.headers.message)),
      onWebSocketError: (event) => fail(new Error(event.message)),
      onConnect: () => {
        const subscription = client.subscribe('/topic/tick.*', (message) => {
          if (JSON.parse(message.body).type !== 'TICK') fail(new Error(message.body));
          // At fifty per second this takes over a second, so that heart-beats are exchanged.
          if (++ticks === 75) {
            client.watchForReceipt('gone', () => client.deactivate());
            subscription.unsubscribe({ receipt: 'gone' });
          }
        });
      },
      onDisconnect: () => {
        clearTimeout(late);
        done();
      },
    });
    client.activate();
  });
}

async function main() {
  for (const version of ['1.0', '1.1', '1.2']) {
    await talk(`ws://localhost:${port}/stomp`, new Versions([version]));
    await talk(`wss://localhost:${tlsPort}/stomp`, new Versions([version]));
  }
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
