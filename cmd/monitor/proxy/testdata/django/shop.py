"""A shop on Django's ORM, which knows nothing of the proxy: shop.py ADDRESS CLIENTS TRANSACTIONS.

Clients buy of three products: they read the stock, make an order with its line, and save what is left. Every third time
they pay the customer's last order instead, and look at what there is.
"""

import sys
import threading
import time
from urllib.parse import parse_qs, urlsplit

import django
from django.conf import settings
from django.db import OperationalError, connection, models, transaction

address, clients, transactions = urlsplit(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
settings.configure(
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": address.path[1:], "USER": address.username,
        "HOST": address.hostname, "PORT": address.port,
        "OPTIONS": {name: values[0] for name, values in parse_qs(address.query).items()}}},
)
django.setup()


class Customer(models.Model):
    name = models.CharField(max_length=40)

    class Meta:
        app_label = "shop"


class Product(models.Model):
    name = models.CharField(max_length=40)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    stock = models.IntegerField()

    class Meta:
        app_label = "shop"


class Order(models.Model):
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT)
    state = models.CharField(max_length=10, default="new")
    made = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "shop"


class Line(models.Model):
    order = models.ForeignKey(Order, on_delete=models.CASCADE)
    product = models.ForeignKey(Product, on_delete=models.PROTECT)
    quantity = models.IntegerField()

    class Meta:
        app_label = "shop"


def buy(customer, product):
    product = Product.objects.get(pk=product)
    order = Order.objects.create(customer=customer)
    Line.objects.create(order=order, product=product, quantity=1)
    time.sleep(0.002)  # the application thinks
    product.stock -= 1
    product.save()


def pay(customer, _):
    order = Order.objects.select_related("customer").filter(customer=customer).order_by("-id").first()
    if order is not None and order.state == "new":
        order.state = "paid"
        order.save(update_fields=["state"])
    list(Product.objects.order_by("id"))


def client(number):
    customer = Customer.objects.get(pk=number + 1)
    done = 0
    while done < transactions:
        try:
            with transaction.atomic():
                (pay if done % 3 == 2 else buy)(customer, (number + done) % 3 + 1)
            done += 1
        except OperationalError as e:
            if e.__cause__.sqlstate != "40001":
                raise
    connection.close()


with connection.schema_editor() as editor:
    for model in (Customer, Product, Order, Line):
        editor.create_model(model)
with transaction.atomic():
    Customer.objects.bulk_create(Customer(name=f"customer {i}") for i in range(clients))
    for i in range(3):
        Product.objects.create(name=f"product {i}", price="9.50", stock=1000)
threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
