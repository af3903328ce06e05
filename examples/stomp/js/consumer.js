// A STOMP consumer over WebSocket with stompjs: prints ticks and order changes for some seconds.
//
//   npm install
//   node consumer.js [ws://127.0.0.1:9090/stomp] [SECONDS] [TOPIC ...]
//
// A browser has its own WebSocket: there, use `brokerURL: url` in place of `webSocketFactory`.

import { Client } from '@stomp/stompjs';
import WebSocket from 'ws';

const [url = 'ws://127.0.0.1:9090/stomp', seconds = '10', ...named] = process.argv.slice(2);
const topics = named.length > 0 ? named : ['tick.*', 'pitlane.>'];
let count = 0;

function print(message) {
  count += 1;
  const topic = message.headers.destination.replace('/topic/', '');
  // JSON.parse makes floats of prices. Keep `message.body` where every digit counts.
  const event = JSON.parse(message.body);
  if (event.type === 'TICK') {
    console.log(`${topic} ${event.symbol} bid ${event.bid} ask ${event.ask} last ${event.last}`);
  } else if (event.type === 'ORDER_STATUS') {
    console.log(`${topic} ${event.side} ${event.quantity} ${event.symbol} ${event.status}`);
  } else {
    console.log(topic, message.body);
  }
}

function fail(problem) {
  console.error(`error: ${problem}`);
  process.exit(1);
}

const client = new Client({
  webSocketFactory: () => new WebSocket(url, ['v12.stomp']),
  reconnectDelay: 0,
  onConnect: () => {
    for (const topic of topics) client.subscribe(`/topic/${topic}`, print);
    setTimeout(() => client.deactivate(), Number(seconds) * 1000);
  },
  onDisconnect: () => {
    console.log(`${count} events`);
    process.exit(0);
  },
  onStompError: (frame) => fail(frame.headers.message),
  onWebSocketError: (event) => fail(`${url}: ${event.message}`),
  onWebSocketClose: (event) => fail(`the broker closed the connection: ${event.code} ${event.reason}`),
});

if (!(Number(seconds) > 0)) fail(`${seconds} is not a number of seconds`);
client.activate();
