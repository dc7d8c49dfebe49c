package flow

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// messageHandlers are the names that libraries for messages call, or that their
// documentation gives to what is called with a message.
var messageHandlers = map[string]bool{
	"on_message": true, "onmessage": true, "onMessage": true, "on_msg": true, "handle_message": true, "handleMessage": true, "message_handler": true,
	"on_publish_received": true, "on_text": true, "on_privmsg": true, "on_pubmsg": true,
}

// messageModules are libraries by which messages of others arrive.
var messageModules = map[string]bool{
	"websocket": true, "websockets": true, "paho": true, "discord": true, "telegram": true, "telebot": true, "aiogram": true, "slack_bolt": true,
	"slack_sdk": true, "socketio": true, "irc": true, "pika": true, "zmq": true, "nats": true, "slixmpp": true, "sleekxmpp": true, "stomp": true,
}

// received is what a parameter that nothing was given for stands for: in a handler
// of messages, what somebody sent.
func (m *Machine) received(fn *Fn) Value {
	if !messageHandlers[m.T.Text(fn.Node)] {
		return Value{}
	}

	for i := range m.R.Effects {
		if e := &m.R.Effects[i]; e.Kind == effect.Import {
			if module, _, _ := strings.Cut(e.Target.Text, "."); messageModules[module] {
				return Tainted(effect.TaintNetwork, "")
			}
		}
	}

	return Value{}
}
